"""What is timed computes what it says: outputs against references, chains that stay bounded, nothing merged."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

mx = pytest.importorskip("mlx.core", reason="MLX is not installed")

from tracekit.bench import Call, Case, link  # noqa: E402
from tracekit.bench.cells import Candidate, Plan  # noqa: E402
from tracekit.bench.checks import allowed, check, exact_chain  # noqa: E402
from tracekit.bench.linear import LINEAR  # noqa: E402
from tracekit.bench.loops import batch, block, chain, compiled, in_turn, links, merged  # noqa: E402
from tracekit.bench.matrices import DTYPES, as_float, partial_permutation  # noqa: E402
from tracekit.bench.operations import OPERATIONS, named_operation  # noqa: E402
from tracekit.bench.protocol import Calls, Weights  # noqa: E402
from tracekit.bench.session import measure  # noqa: E402
from tracekit.errors import UnusableInput  # noqa: E402

SMALL = Case(m=3, k=64, n=128, dtype="f32", experts=4, top_k=2, heads=4, kv_heads=2, head_dim=32, context=24)
FORMATS = [("affine", 4, 64), ("affine", 8, 32), ("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)]


def case_of(mode: str, bits: int, group_size: int, **others: Any) -> Case:  # noqa: ANN401
    return replace(SMALL, mode=mode, bits=bits, group_size=group_size, **others)


def calls_of(name: str, case: Case = SMALL, *, pair: bool = True) -> Calls:
    return named_operation(name, pair=pair)(case)


def weights_of(calls: Calls) -> list[Weights]:
    weights = [call.weights() for call in calls]
    mx.eval(weights)
    return weights


def inputs_of(calls: Calls, turns: int) -> list[Any]:
    inputs = [call.input(index) for index in range(turns) for call in calls]
    mx.eval(inputs)
    return inputs


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_outputs_are_those_of_the_float_reference(name: str, dtype: str) -> None:
    case = replace(SMALL, dtype=dtype)
    calls = calls_of(name, case)
    found = check(name, case, calls, weights_of(calls), None)
    assert found.error is not None
    assert 0 <= found.error <= allowed(case)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ["qmm", "gather_qmm"])
def test_every_format_is_computed_right(name: str, form: tuple[str, int, int]) -> None:
    case = case_of(*form)
    calls = calls_of(name, case)
    found = check(name, case, calls, weights_of(calls), None)
    assert found.error is not None and found.error <= allowed(case)


def test_a_wrong_output_is_noticed() -> None:
    calls = calls_of("matmul")
    wrong = tuple(replace(call, apply=lambda x, w: 1.01 * (x @ w.T)) for call in calls)
    found = check("matmul", SMALL, wrong, weights_of(calls), None)
    assert found.error is not None and found.allowed is not None
    assert found.error > found.allowed


def test_references_agree_with_arithmetic_written_out() -> None:
    (call,) = calls_of("sdpa", replace(SMALL, m=1, heads=2, kv_heads=1, head_dim=32, context=3))
    (keys, values), query = call.weights(), call.input(0)
    k, v, q = (np.asarray(each) for each in (keys, values, query))
    for head in range(2):
        scores = [float(np.dot(q[0, head, 0], k[0, 0, t])) / 32**0.5 for t in range(3)]
        share = np.exp(scores) / np.exp(scores).sum()
        expected = sum(share[t] * v[0, 0, t] for t in range(3))
        assert call.reference
        np.testing.assert_allclose(call.reference((keys, values), query)[0, head, 0], expected, rtol=1e-4)


@pytest.mark.parametrize("form", FORMATS[:4])
@pytest.mark.parametrize(("k", "n"), [(64, 64), (64, 192), (192, 64)])
@pytest.mark.parametrize("name", ["qmm", "gather_qmm"])
def test_a_chain_of_permutations_is_exact(name: str, k: int, n: int, form: tuple[str, int, int]) -> None:
    assert exact_chain(LINEAR[name], case_of(*form, k=k, n=n, dtype="bf16")) is True


def test_a_format_without_exact_ones_has_no_exact_chain() -> None:
    assert exact_chain(LINEAR["qmm"], case_of("nvfp4", 4, 16)) is None


def test_a_chain_that_mixes_up_its_rows_is_not_exact() -> None:
    def shifted(case: Case) -> Any:  # noqa: ANN401
        linear = LINEAR["matmul"](case)
        return linear._replace(multiply=lambda x, weights: mx.roll(x @ weights.T, 1, axis=-1))

    assert exact_chain(shifted, SMALL) is False


@pytest.mark.parametrize(("outputs", "inputs"), [(5, 5), (3, 8), (8, 3)])
def test_a_partial_permutation_repeats_each_input_at_most_once(outputs: int, inputs: int) -> None:
    source = partial_permutation(outputs, inputs, 7)
    used = sorted(index for index in source if index >= 0)
    assert len(source) == outputs
    assert len(used) == min(outputs, inputs)
    assert used == sorted(set(used)) and max(used) < inputs


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("name", "k", "n"), [("qmm", 64, 64), ("qmm", 64, 192), ("gather_qmm", 64, 128)])
def test_values_stay_bounded_over_a_long_chain(name: str, k: int, n: int, form: tuple[str, int, int]) -> None:
    calls = calls_of(name, case_of(*form, k=k, n=n, dtype="f32"))
    (last,) = chain(calls)([call.input(0) for call in calls], weights_of(calls) * 2048)
    size = float(np.sqrt(np.mean(np.square(as_float(last)))))
    assert 1e-4 < size < 1e4


def test_a_chain_through_links_stays_as_bounded_as_its_input() -> None:
    calls = calls_of("qmm", pair=False)
    x = calls[0].input(0)
    (last,) = chain(calls)([x], weights_of(calls) * 300)
    assert last.shape == x.shape
    assert float(mx.max(mx.abs(last - x))) < 0.5


def test_a_chain_depends_on_every_call() -> None:
    seen: list[int] = []

    def noted(x: Any, weight: int) -> Any:  # noqa: ANN401
        seen.append(weight)
        return x * 2 + weight

    calls = (Call(tuple, lambda _: mx.array([1.0]), noted),)
    (last,) = chain(calls)([mx.array([1.0])], [5, 6, 7])
    assert seen == [5, 6, 7]
    assert last.item() == ((1 * 2 + 5) * 2 + 6) * 2 + 7


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_input_or_weight_is_made_twice_alike(name: str) -> None:
    for call in calls_of(name):
        first, second = call.input(0), call.input(1)
        assert not bool(mx.array_equal(first, second))
        assert bool(mx.array_equal(first, call.input(0)))


@pytest.mark.parametrize("pair", [True, False])
@pytest.mark.parametrize("name", OPERATIONS)
def test_nothing_is_merged_as_it_is(name: str, pair: bool) -> None:
    calls = calls_of(name, pair=pair)
    inputs = inputs_of(calls, 4)
    for graph in (chain(calls), batch(calls)):
        assert not merged(graph, calls, inputs, weights_of(calls) * 4)


@pytest.mark.parametrize("name", ["matmul", "qmm", "gather_qmm", "sdpa"])
def test_the_compiler_merges_no_calls_of_distinct_inputs(name: str) -> None:
    calls = calls_of(name)
    inputs = inputs_of(calls, 4)
    weights = weights_of(calls) * 4
    for graph in (chain(calls), batch(calls)):
        assert not merged(compiled(graph), calls, inputs, weights)
        for one, other in zip(graph(inputs, weights), compiled(graph)(inputs, weights), strict=True):
            np.testing.assert_allclose(as_float(one), as_float(other), rtol=1e-4, atol=1e-4)


def test_calls_of_one_input_that_the_compiler_merges_are_noticed() -> None:
    calls = calls_of("qmm", replace(SMALL, n=64))
    inputs = inputs_of(calls, 1)

    def same(inputs: Sequence[Any], weights: Sequence[Weights]) -> list[Any]:
        return [mx.stack([calls[0].apply(inputs[0], weights[0]) for _ in weights])]

    weights = weights_of(calls) * 8
    assert not merged(same, calls, inputs, weights)
    assert merged(compiled(same), calls, inputs, weights)


def test_calls_that_the_compiler_fuses_into_one_are_noticed() -> None:
    calls = calls_of("copy")
    inputs = inputs_of(calls, 1)
    assert merged(compiled(chain(calls)), calls, inputs, weights_of(calls) * 4)


def test_the_block_has_its_norm_before_and_its_residual_after() -> None:
    calls = calls_of("matmul")
    around = block(calls)
    x, weights = around.input(0), around.weights()
    values, (up, down) = as_float(x), (as_float(each) for each in weights)
    normed = values / np.sqrt(np.mean(np.square(values), axis=-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(
        as_float(around.apply(x, weights)), values + normed @ up.T @ down.T, rtol=1e-3, atol=1e-4
    )
    assert around.operations == 2


def test_a_block_needs_an_output_of_the_input_s_shape() -> None:
    with pytest.raises(UnusableInput, match="chain through a pair"):
        block(calls_of("qmm", pair=False))


def test_sets_of_weights_go_round() -> None:
    assert in_turn([["a", "b"], ["c", "d"], ["e", "f"]], 4, begin=1) == ["c", "d", "e", "f", "a", "b", "c", "d"]


def test_links_cost_a_chain_of_the_same_length() -> None:
    x = mx.array([[1.0, 2.0]])
    (last,) = links([x], [None] * 3)
    first = 1.0
    for _ in range(3):
        first = 1.0 + first / 64
    assert as_float(last)[0, 0] == pytest.approx(first)
    assert bool(mx.array_equal(link(x, mx.zeros((1, 7))), x))


def plan(name: str, **others: Any) -> Plan:  # noqa: ANN401
    known = {
        "candidates": [Candidate(name, named_operation(name, pair=True))],
        "case": SMALL, "sizes": [1, 2], "methods": ["chain", "batched", "per-call"], "weights": ["hot", "cold"],
        "blocks": ["bare", "norm-residual"], "chain_length": 8, "batch": 8, "rounds": 3, "compile": False,
        "cache": 1 << 16,
    }  # fmt: skip
    return Plan(**{**known, **others})


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_cell_gets_a_sample_in_every_round(name: str) -> None:
    found, checks = measure(plan(name))
    weights = 1 if name == "copy" else 2
    assert len({each.cell for each in found}) == len(found) == 2 * 3 * 2 * weights
    assert {each.time_ns.size for each in found} == {3}
    assert [(each.m, each.error is not None) for each in checks] == [(1, True), (2, True)]


def test_bytes_are_those_of_one_operation() -> None:
    found, _ = measure(plan("matmul", sizes=[2], blocks=["bare"], weights=["hot"], methods=["chain"]))
    # Weights of 64 x 128 values and two rows in and out, in float32.
    assert found[0].bytes == 4 * (64 * 128 + 2 * (64 + 128))


def test_only_the_experts_that_are_chosen_are_bytes_moved() -> None:
    small = measure(plan("gather_qmm", sizes=[1], blocks=["bare"], weights=["hot"], methods=["batched"]))[0][0]
    whole = sum(array.nbytes for array in weights_of(calls_of("gather_qmm"))[0])
    rows = 4 * 2 * (64 + 128)
    assert small.bytes == pytest.approx(whole / 2 + rows, abs=2)


def test_a_chain_whose_values_grow_is_withheld() -> None:
    def growing(case: Case) -> Calls:
        return (Call(lambda: mx.array(30.0), lambda seed: mx.ones((case.m, case.k)) * (seed + 1), lambda x, w: x * w),)

    grown = Candidate("growing", growing)
    found, _ = measure(plan("copy", candidates=[grown], blocks=["bare"], methods=["chain", "batched"], weights=["hot"]))
    assert [(each.cell.method, each.marks, each.time_ns.size) for each in found if each.cell.m == 1] == [
        ("chain", ["unbounded"], 0),
        ("batched", [], 3),
    ]


def test_cold_weights_do_not_fit_the_cache() -> None:
    from tracekit.bench import session

    weights = weights_of(calls_of("matmul"))
    size = sum(array.nbytes for array in weights)
    sets = session._sets(weights, "cold", cache=5 * size // 2)
    assert len(sets) == 5
    assert len({id(array) for copy in sets for array in copy}) == 10
    assert all(bool(mx.array_equal(one, other)) for copy in sets for one, other in zip(copy, weights, strict=True))


def test_the_same_seed_makes_the_same_values() -> None:
    make = partial(calls_of, "qmm")
    once, again = (weights_of(make())[0] for _ in range(2))
    assert all(bool(mx.array_equal(a, b)) for a, b in zip(once, again, strict=True))
    other = weights_of(make(replace(SMALL, seed=1)))[0]
    assert not bool(mx.array_equal(once[0], other[0]))
