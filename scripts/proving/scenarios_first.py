"""Scenarios written while the estimators were: what each explanation looks like, alone and mixed with others."""

from dataclasses import replace

from proving.building import (
    ATTENTION,
    COPY,
    FAIR,
    GEMV,
    MATMUL,
    NORM,
    PAGES_BROKEN,
    ROOMY,
    ROPE,
    THRASHED,
    TINY,
    decode,
    decodes,
    layers,
    prefill,
    prefills,
)
from proving.scenario import Expected, Scenario, scenario
from proving.workload import (
    EAGER,
    GRAPH,
    QUIET,
    SERIAL_GRAPH,
    Arm,
    Node,
    chain,
    in_order,
    side_by_side,
)

TWO_MATMULS = layers(side_by_side([MATMUL], [MATMUL]))
IN_A_ROW = layers(chain(MATMUL, ROPE, ATTENTION, COPY))
STEP = layers(chain(GEMV, ROPE, TINY), 8)


@scenario
def two_matmuls_lose() -> Scenario:
    """Two matmuls at once break up each other's memory pages and take longer than in a row."""
    return prefills(PAGES_BROKEN, TWO_MATMULS, Expected("overlap_lost"))


@scenario
def two_matmuls_overflow_the_cache() -> Scenario:
    """Two matmuls at once do not fit the cache and take longer than in a row."""
    return prefills(THRASHED, TWO_MATMULS, Expected("overlap_lost"))


@scenario
def three_branches_lose() -> Scenario:
    """Three branches of unlike kernels and lengths, at depths that change all the time."""
    work = layers(side_by_side([MATMUL, ROPE], [COPY, COPY, COPY], [ATTENTION, GEMV]))
    return prefills(PAGES_BROKEN, work, Expected("overlap_lost"))


@scenario
def copies_in_a_loop_lose() -> Scenario:
    """A train of short copy kernels beside one long matmul, some of it alone."""
    work = layers(side_by_side([MATMUL], [COPY, TINY, COPY, TINY]))
    return prefills(THRASHED, work, Expected("overlap_lost"))


@scenario
def mixed_shapes_lose() -> Scenario:
    """One key stands for matmuls of three sizes; side by side they lose."""
    sizes = (0.4, 1.7, 0.9, 2.4, 0.5)
    pairs = [(Node(MATMUL, size=size), Node(COPY), Node(MATMUL, (1,), size=2 * size)) for size in sizes]
    work = in_order(*(part for pair in pairs for part in (chain(NORM), pair)))
    return prefills(PAGES_BROKEN, work, Expected("overlap_lost"))


@scenario
def small_kernels_gain() -> Scenario:
    """Kernels that fill less than half of the GPU run at once as fast as alone."""
    return prefills(ROOMY, layers(side_by_side([GEMV, ROPE], [ROPE, GEMV])), Expected("overlap_gained"))


@scenario
def two_share_and_win() -> Scenario:
    """Two at once: each takes 1.7 times as long, both together less than one after the other."""
    kernel = replace(MATMUL, bandwidth=0.86)
    return prefills(FAIR, layers(side_by_side([kernel], [kernel])), Expected("plain_sharing"))


@scenario
def three_share_and_win() -> Scenario:
    """Three at once: each takes 2.6 times as long, all together less than one after the other."""
    kernel = replace(MATMUL, bandwidth=0.86)
    return prefills(FAIR, layers(side_by_side([kernel], [kernel], [kernel])), Expected("plain_sharing"))


@scenario
def dependent_launch_on_one_stream() -> Scenario:
    """Kernels of one stream begin before the one before them ends, and gain."""
    kernels = [replace(kernel, bandwidth=0.3, compute=0.3) for kernel in (MATMUL, ROPE, ATTENTION, COPY)]
    work = chain(*kernels * 5)
    early = tuple(replace(node, trigger=0.85) for node in work)
    plan = prefills(FAIR, work, Expected("overlap_gained"), EAGER, EAGER)
    return replace(plan, arms=(Arm((prefill(early, EAGER),)), plan.arms[1]))


@scenario
def two_streams_gain() -> Scenario:
    """No graph at all: small kernels on two streams against one."""
    on_streams = replace(EAGER, serial=False)
    return prefills(ROOMY, layers(side_by_side([GEMV] * 3, [ROPE] * 4)), Expected("overlap_gained"), on_streams, EAGER)


@scenario
def pauses_between_kernels() -> Scenario:
    """The same kernels, with longer pauses on the GPU between those that wait for each other."""
    return decodes(FAIR, STEP, Expected("gaps"), SERIAL_GRAPH, replace(EAGER, gap_ns=5000, launch_ns=1500))


@scenario
def eager_is_launch_bound() -> Scenario:
    """Kernels shorter than the calls that launch them."""
    return decodes(
        FAIR, chain(*[TINY, ROPE] * 16), Expected("launch_bound"), SERIAL_GRAPH, replace(EAGER, launch_ns=12_000)
    )


@scenario
def many_small_graphs_are_launch_bound() -> Scenario:
    """One step cut into a dozen graphs, each with a slow launch, against one graph."""
    cut = replace(SERIAL_GRAPH, graphs=12, launch_ns=60_000)
    return decodes(FAIR, STEP, Expected("launch_bound"), cut, SERIAL_GRAPH)


@scenario
def one_kernel_more_often() -> Scenario:
    """Another path: one arm copies three times where the other copies once."""
    once, thrice = (layers(chain(MATMUL, *[COPY] * count)) for count in (1, 3))
    arms = Arm((prefill(thrice, GRAPH),)), Arm((prefill(once, EAGER),))
    return Scenario(FAIR, arms, {"prefill": Expected("counts_differ")})


@scenario
def other_kernels() -> Scenario:
    """Another path: one arm splits a matmul and adds up, the other runs a kernel of its own."""
    split, added = replace(MATMUL, name="splitk_partial", solo_ns=120_000), replace(COPY, name="splitk_reduce")
    whole = replace(MATMUL, name="gemm_persistent", solo_ns=90_000)
    arms = (
        Arm((prefill(layers(chain(split, added, ROPE)), GRAPH),)),
        Arm((prefill(layers(chain(whole, ROPE)), EAGER),)),
    )
    return Scenario(FAIR, arms, {"prefill": Expected("one_side_only")})


@scenario
def instantiated_each_step() -> Scenario:
    """Every step builds and instantiates its graph anew while the GPU waits."""
    anew = replace(SERIAL_GRAPH, setup="instantiate", setup_ns=250_000)
    return prefills(FAIR, IN_A_ROW, Expected("setup"), anew, SERIAL_GRAPH)


@scenario
def updated_each_step() -> Scenario:
    """Every step updates its executable, for longer than the step before it runs."""
    updated = replace(SERIAL_GRAPH, setup="update", setup_ns=700_000)
    return decodes(FAIR, STEP, Expected("setup"), updated, EAGER)


@scenario
def slower_clock() -> Scenario:
    """One arm met a lower clock: every kernel takes 9 % longer."""
    plan = prefills(FAIR, IN_A_ROW, Expected("clocks"), SERIAL_GRAPH)
    return replace(plan, arms=(replace(plan.arms[0], clock=1.09), plan.arms[1]))


@scenario
def slower_clock_beside_overlap() -> Scenario:
    """The arm with the lower clock also overlaps, which neither gains nor loses: not to be blamed on overlap."""
    kernel = replace(MATMUL, bandwidth=1.0)
    work = layers(in_order(side_by_side([kernel], [kernel]), chain(ATTENTION, ROPE)))
    plan = prefills(FAIR, work, Expected("clocks"))
    return replace(plan, arms=(replace(plan.arms[0], clock=1.08), plan.arms[1]))


@scenario
def drifting() -> Scenario:
    """One recording a side; one of them slows down by 15 % from its first instance to its last."""
    arms = (
        Arm((prefill(IN_A_ROW, SERIAL_GRAPH, 24),), drift=0.15),
        Arm((prefill(IN_A_ROW, EAGER, 24),)),
    )
    return Scenario(FAIR, arms, {"prefill": Expected("drift", undecided=True)}, blocks=1)


@scenario
def fast_and_slow_blocks() -> Scenario:
    """A machine with a fast and a slow state, which the arms met in turn."""
    arms = (
        Arm((prefill(IN_A_ROW, SERIAL_GRAPH),), states=(1.0, 1.5)),
        Arm((prefill(IN_A_ROW, EAGER),), states=(1.5, 1.0)),
    )
    return Scenario(FAIR, arms, {"prefill": Expected("drift", undecided=True)}, blocks=6)


@scenario
def the_program_works_between_launches() -> Scenario:
    """The GPU waits for the program, which is in no CUDA call."""
    return decodes(FAIR, STEP, Expected("host_work"), SERIAL_GRAPH, replace(EAGER, host_ns=22_000))


@scenario
def copied_to_and_fro() -> Scenario:
    """One arm copies between host and device before its kernels."""
    return prefills(FAIR, IN_A_ROW, Expected("copies"), replace(SERIAL_GRAPH, copies=4, copy_ns=90_000), EAGER)


@scenario
def no_difference() -> Scenario:
    """The same kernels in a row, as a graph and eagerly."""
    return prefills(FAIR, IN_A_ROW, Expected(None), SERIAL_GRAPH)


@scenario
def overlap_without_effect() -> Scenario:
    """Kernels at once that take exactly as long as in a row: stretched twofold, nothing lost."""
    kernel = replace(MATMUL, bandwidth=1.0)
    return prefills(FAIR, layers(side_by_side([kernel], [kernel])), Expected(None))


@scenario
def both_arms_lose_alike() -> Scenario:
    """Overlap loses time, in both arms the same: no difference to explain."""
    return prefills(PAGES_BROKEN, TWO_MATMULS, Expected(None), GRAPH, GRAPH)


@scenario
def replayed_bytes() -> Scenario:
    """Every block is the same recording, byte for byte, without any noise."""
    plan = prefills(PAGES_BROKEN, TWO_MATMULS, Expected("overlap_lost"))
    return replace(plan, arms=tuple(replace(arm, noise=QUIET) for arm in plan.arms), replayed=True)


@scenario
def a_kernel_slower_in_graphs() -> Scenario:
    """The same kernels, none beside another; one of them takes 30 % longer in the graph."""
    plan = prefills(FAIR, IN_A_ROW, Expected("kernels_alone"), SERIAL_GRAPH)
    return replace(plan, arms=(replace(plan.arms[0], slower={ATTENTION.name: 1.3}), plan.arms[1]))


@scenario
def phases_disagree() -> Scenario:
    """Graphs lose prefill by overlap and win decode by shorter pauses."""
    slow = replace(EAGER, gap_ns=5000, launch_ns=1500)
    arms = (
        Arm((prefill(TWO_MATMULS, GRAPH), decode(STEP, GRAPH))),
        Arm((prefill(TWO_MATMULS, EAGER), decode(STEP, slow))),
    )
    return Scenario(PAGES_BROKEN, arms, {"prefill": Expected("overlap_lost"), "decode": Expected("gaps")})


@scenario
def serial_graph_is_best() -> Scenario:
    """Overlap loses and eager pauses cost: graphs whose nodes run one after another beat both."""
    slow = replace(EAGER, gap_ns=9000)
    arms = tuple(Arm((prefill(TWO_MATMULS, how),)) for how in (GRAPH, slow, SERIAL_GRAPH))
    return Scenario(THRASHED, arms, {"prefill": Expected("overlap_lost", best="c", serial="c")})


@scenario
def loss_hidden_by_shorter_pauses() -> Scenario:
    """Overlap loses about what shorter pauses save: the arms take the same time for two reasons that cancel."""
    work = layers(in_order(side_by_side([MATMUL], [COPY, COPY]), STEP[:12]), 4)
    slow = replace(EAGER, gap_ns=3300, launch_ns=1500)
    return prefills(PAGES_BROKEN, work, Expected(None, named=("overlap_lost", "gaps")), GRAPH, slow)


@scenario
def gain_and_loss_in_one_phase() -> Scenario:
    """Small kernels gain and matmuls lose in the same phase; the loss is the larger."""
    work = layers(in_order(side_by_side([GEMV, ROPE], [ROPE, GEMV]), side_by_side([MATMUL], [MATMUL])))
    return prefills(THRASHED, work, Expected("overlap_lost"))


@scenario
def tracing_lengthens_pauses_in_graphs() -> Scenario:
    """Tracing node by node adds a pause before each kernel of the graph: unprofiled, the graph is the faster arm."""
    plan = decodes(
        FAIR, STEP, Expected("profiler", named=("gaps",)), SERIAL_GRAPH, replace(EAGER, gap_ns=4000, launch_ns=1500)
    )
    return replace(plan, arms=(replace(plan.arms[0], traced_ns=7000), plan.arms[1]))
