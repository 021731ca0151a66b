"""Scenarios written after the estimators were frozen: attempts to have overlap blamed for what it did not do, or
missed where it did."""

from dataclasses import replace

from proving.building import (
    ATTENTION,
    COPY,
    FAIR,
    GEMV,
    MATMUL,
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
from proving.workload import EAGER, GRAPH, SERIAL_GRAPH, Arm, Phase, chain, in_order, side_by_side

PAIR = side_by_side([MATMUL], [MATMUL])
PAIRS = layers(PAIR)
ROW = layers(chain(MATMUL, ROPE, ATTENTION), 6)
STEP = layers(chain(GEMV, ROPE, TINY), 8)


@scenario
def one_of_three_phases_loses() -> Scenario:
    """Only the middle one of three phases overlaps at a loss; the others run the same in both arms."""
    works = {"embed": (ROW, None), "prefill": (PAIRS, "overlap_lost"), "head": (ROW, None)}
    arms = tuple(
        Arm(tuple(Phase(name, work, how if cause else EAGER, 6) for name, (work, cause) in works.items()))
        for how in (GRAPH, EAGER)
    )
    return Scenario(PAGES_BROKEN, arms, {name: Expected(cause) for name, (_, cause) in works.items()})


@scenario
def five_branches_lose() -> Scenario:
    """Five matmuls at once overflow the cache five times over."""
    return prefills(THRASHED, layers(side_by_side(*[[MATMUL]] * 5), 2), Expected("overlap_lost"))


@scenario
def a_long_kernel_hides_short_ones() -> Scenario:
    """A train of short kernels runs beside a long one that leaves them room."""
    long = replace(ROPE, name="scan", solo_ns=150_000)
    work = layers(side_by_side([long], [GEMV, ROPE, TINY, GEMV]))
    return prefills(ROOMY, work, Expected("overlap_gained"))


@scenario
def the_losing_kernel_also_runs_alone() -> Scenario:
    """The same matmul alone in every layer and in pairs in every layer: only the pairs lose."""
    return prefills(PAGES_BROKEN, layers(in_order(chain(MATMUL), PAIR)), Expected("overlap_lost"))


@scenario
def more_launches_on_a_lower_clock() -> Scenario:
    """One arm copies five times where the other copies twice, on a clock that is 4 % lower."""
    more, fewer = (layers(chain(MATMUL, *[COPY] * count)) for count in (5, 2))
    arms = Arm((prefill(more, SERIAL_GRAPH),), clock=1.04), Arm((prefill(fewer, EAGER),))
    return Scenario(FAIR, arms, {"prefill": Expected("counts_differ", named=("clocks",))})


@scenario
def eager_sets_up_each_step() -> Scenario:
    """The eager arm loads or builds something in every step; the graph does not."""
    plan = prefills(FAIR, ROW, Expected("setup"), SERIAL_GRAPH, SERIAL_GRAPH)
    anew = replace(SERIAL_GRAPH, setup="instantiate", setup_ns=400_000)
    return replace(plan, arms=(plan.arms[0], Arm((prefill(ROW, anew),))))


@scenario
def host_work_behind_long_kernels() -> Scenario:
    """The program works between launches, but kernels are long and launched ahead: the GPU never waits."""
    step = layers(chain(MATMUL, ATTENTION), 6)
    return decodes(FAIR, step, Expected(None), SERIAL_GRAPH, replace(EAGER, host_ns=12_000))


@scenario
def serial_graph_against_parallel_graph() -> Scenario:
    """Two arms of graphs, none eager: the parallel one loses by overlap."""
    return prefills(THRASHED, PAIRS, Expected("overlap_lost"), GRAPH, SERIAL_GRAPH)


@scenario
def serial_graph_against_gaining_graph() -> Scenario:
    """Two arms of graphs, none eager: the parallel one gains."""
    work = layers(side_by_side([GEMV, ROPE], [ROPE, GEMV]))
    return prefills(ROOMY, work, Expected("overlap_gained"), GRAPH, SERIAL_GRAPH)


@scenario
def a_kernel_of_one_side_beside_a_loss() -> Scenario:
    """Overlap loses, and the graph arm also runs a short kernel that the other does not."""
    extra = replace(ROPE, name="cast_extra", solo_ns=60_000)
    arms = (
        Arm((prefill(layers(in_order(PAIR, chain(extra))), GRAPH),)),
        Arm((prefill(PAIRS, EAGER),)),
    )
    return Scenario(PAGES_BROKEN, arms, {"prefill": Expected("overlap_lost", named=("one_side_only",))})


@scenario
def sharing_and_slow_launches() -> Scenario:
    """Kernels of a step share the GPU and win a little; most of the difference is eager's slow launches."""
    kernel = replace(GEMV, name="qmv_share")
    work = layers(side_by_side([kernel, TINY], [TINY, TINY]), 8)
    slow = replace(EAGER, launch_ns=30_000)
    return decodes(FAIR, work, Expected("launch_bound"), GRAPH, slow)


@scenario
def both_arms_drift() -> Scenario:
    """Both arms slow down by 12 % over one recording each: no verdict, though they drift alike."""
    arms = tuple(Arm((prefill(ROW, how, 24),), drift=0.12) for how in (SERIAL_GRAPH, EAGER))
    return Scenario(FAIR, arms, {"prefill": Expected("drift", undecided=True)}, blocks=1)


@scenario
def two_blocks_are_too_few() -> Scenario:
    """A clear loss, recorded in two blocks: a tendency, no verdict."""
    plan = prefills(PAGES_BROKEN, PAIRS, Expected(None, undecided=True))
    return replace(plan, blocks=2)


@scenario
def a_faster_kernel_hides_a_loss() -> Scenario:
    """Overlap loses, and a kernel that is faster in the graph arm wins more: two causes against each other."""
    work = layers(in_order(side_by_side([MATMUL], [COPY, COPY]), chain(ATTENTION, ATTENTION)), 4)
    plan = prefills(PAGES_BROKEN, work, Expected(None, named=("overlap_lost", "kernels_alone")))
    return replace(plan, arms=(replace(plan.arms[0], slower={ATTENTION.name: 0.68}), plan.arms[1]))


@scenario
def a_kernel_slower_in_both_phases() -> Scenario:
    """One kernel takes 25 % longer in the graph arm, alone and in two phases, and none overlaps."""
    arms = (
        Arm((prefill(ROW, SERIAL_GRAPH), decode(ROW, SERIAL_GRAPH)), slower={MATMUL.name: 1.25}),
        Arm((prefill(ROW, EAGER), decode(ROW, EAGER))),
    )
    expected = {"prefill": Expected("kernels_alone"), "decode": Expected("kernels_alone")}
    return Scenario(FAIR, arms, expected)


@scenario
def parallel_prefill_serial_decode() -> Scenario:
    """Of three arms the graph gains prefill, and the serial graph is the best for decode."""
    small = layers(side_by_side([GEMV, ROPE], [ROPE, GEMV]))
    slow = replace(EAGER, gap_ns=6000, launch_ns=1500)
    arms = tuple(Arm((prefill(small, how), decode(PAIRS, how))) for how in (GRAPH, slow, SERIAL_GRAPH))
    expected = {"prefill": Expected("overlap_gained", best="a"), "decode": Expected("overlap_lost", best="c")}
    return Scenario(THRASHED, arms, expected)


@scenario
def copies_and_a_lower_clock() -> Scenario:
    """One arm copies before its kernels and runs on a lower clock: two causes, the copies the larger."""
    plan = prefills(FAIR, ROW, Expected("copies", named=("clocks",)), replace(SERIAL_GRAPH, copies=4, copy_ns=90_000))
    return replace(plan, arms=(replace(plan.arms[0], clock=1.05), plan.arms[1]))
