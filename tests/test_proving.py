"""The proof proves itself: the GPU model against a slow simulation, its accounts, and a judge that can say no."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import prove
import pytest
from proving.building import COPY, FAIR, MATMUL, PAGES_BROKEN, prefill
from proving.contention_laws import MEMORY_BOUND, Bandwidth, Waves
from proving.gpu_model import Kernel, Law, Task, run
from proving.harness import Loss, Nothing, Shown
from proving.judging import Judged, answer_to, claims, judge
from proving.noise import Noise
from proving.random_plans import LAW_NAMES, LEAST_LOSS, losing_plan, without_noise
from proving.recording import record
from proving.scenario import SCENARIOS, Expected, Played, Scenario, play
from proving.targets import asked_of, targets
from proving.truth import CAUSES, Account, causes, clusters
from proving.workload import GRAPH, QUIET, Arm, chain, in_order, side_by_side

from tracekit.analysis.results import Diff

LAWS: list[Law] = [Bandwidth(interference=0.7), Waves(sms=20, cache=16, thrash=1.8)]
every_law = pytest.mark.parametrize("law", LAWS, ids=["bandwidth", "waves"])

STEP = 0.002
"""Length of a step (ns) of the slow simulation."""


def random_tasks(seed: int, law: Law) -> list[Task]:
    """A few kernels with random edges, pauses and launch times."""
    draw = Noise("tasks", seed)
    tasks = []
    for number in range(draw.count(3, 7)):
        kernel = Kernel(
            f"k{number}",
            solo_ns=1,
            bandwidth=draw.between(0.1, 1),
            compute=draw.between(0.1, 0.7),
            blocks=draw.count(5, 200),
            per_sm=draw.count(1, 3),
            working_set=draw.between(3, 12),
        )
        after = tuple(other for other in range(number) if draw.between(0, 1) < 0.25)
        early = isinstance(law, Bandwidth) and draw.between(0, 1) < 0.3
        tasks.append(
            Task(
                kernel,
                work=draw.between(5, 30),
                ready=draw.between(0, 15),
                after=after,
                pause=draw.between(0, 3),
                trigger=0.6 if early else 1.0,
            )
        )
    return tasks


@dataclass
class Stepped:
    """What the slow simulation saw: when each task began and ended; W and S of time with two or more running."""

    starts: list[float]
    ends: list[float]
    wall: float = 0.0
    solo: float = 0.0


def stepped(tasks: Sequence[Task], law: Law) -> Stepped:
    """The tasks in small steps of time, everything looked at anew in each."""
    tasks = [replace(task, marks=[]) for task in tasks]
    seen = Stepped([-1.0] * len(tasks), [-1.0] * len(tasks))
    free: dict[int, float] = {number: 0.0 for number, task in enumerate(tasks) if not task.after}
    before: list[int] = []
    rates: list[float] = []
    now = 0.0
    while min(seen.ends) < 0:
        for number, task in enumerate(tasks):
            if number not in free and all(
                tasks[other].done >= task.trigger * tasks[other].work - 1e-9 for other in task.after
            ):
                free[number] = now + task.pause
            if seen.starts[number] < 0 and now >= max(task.ready, free.get(number, float("inf"))):
                seen.starts[number] = now
        running = [n for n in range(len(tasks)) if seen.starts[n] >= 0 and seen.ends[n] < 0]
        if running != before:
            rates = law.rates([tasks[number] for number in running])
            before = running
        for number, rate in zip(running, rates, strict=True):
            tasks[number].done += rate * STEP
        if len(running) > 1:
            seen.wall += STEP
            seen.solo += sum(rates) * STEP
        now += STEP
        for number in running:
            if tasks[number].done >= tasks[number].work - 1e-9:
                seen.ends[number] = now
    return seen


@every_law
@pytest.mark.parametrize("kernel", [MATMUL, COPY, Kernel("k", 1, bandwidth=1, compute=1, blocks=7, per_sm=3)])
def test_a_kernel_with_the_gpu_to_itself_takes_its_solo_time(law: Law, kernel: Kernel) -> None:
    tasks = [Task(kernel, work=100.0, ready=5.0), Task(kernel, work=40.0, after=(0,), pause=2.0)]
    run(tasks, law)
    assert [time for task in tasks for time in (task.start, task.end)] == pytest.approx([5, 105, 107, 147])


@every_law
@pytest.mark.parametrize("seed", range(6))
def test_events_fall_where_a_simulation_in_small_steps_has_them(law: Law, seed: int) -> None:
    tasks = random_tasks(seed, law)
    seen = stepped(tasks, law)
    run(tasks, law)
    slack = 20 * STEP
    assert [task.start for task in tasks] == pytest.approx(seen.starts, abs=slack)
    assert [task.end for task in tasks] == pytest.approx(seen.ends, abs=slack)


@every_law
@pytest.mark.parametrize("seed", range(6))
def test_loss_of_clusters_is_wall_less_solo_work_where_two_or_more_run(law: Law, seed: int) -> None:
    tasks = random_tasks(seed, law)
    seen = stepped(tasks, law)
    run(tasks, law)
    assert sum(each.lost for each in clusters(tasks)) == pytest.approx(seen.wall - seen.solo, abs=0.2)


def test_what_was_thrown_out_of_the_cache_is_paid_for_after_the_overlap_too() -> None:
    law = Waves(cache=10, thrash=2.0, refill=0.25)
    kernel = Kernel("k", 1, blocks=10, per_sm=1, working_set=6)
    tasks = [Task(kernel, work=100.0), Task(kernel, work=400.0)]
    run(tasks, law)
    # Both at a rate of 1 / 2.5 until the first has done 100; then the other's 300 left at 1 / 1.25.
    assert [task.end for task in tasks] == [pytest.approx(250), pytest.approx(250 + 300 * 1.25)]
    (cluster,) = clusters(tasks)
    assert cluster.lost == pytest.approx(625 - 500)


@pytest.mark.parametrize("seed", range(20))
def test_kernels_together_get_no_more_than_the_gpu_has(seed: int) -> None:
    tasks = random_tasks(seed, LAWS[0])
    bandwidth, waves = Bandwidth(interference=0.7), Waves(sms=20)
    rates = bandwidth.rates(tasks)
    bound = sum(task.kernel.bandwidth >= MEMORY_BOUND for task in tasks)
    assert all(0 < rate <= 1 for rate in (*rates, *waves.rates(tasks)))
    used = sum(rate * task.kernel.bandwidth for rate, task in zip(rates, tasks, strict=True))
    assert used <= bandwidth.available(bound) + 1e-9
    assert sum(rate * task.kernel.compute for rate, task in zip(rates, tasks, strict=True)) <= 1 + 1e-9
    assert sum(waves.dealt(tasks)) <= waves.sms


@every_law
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(law: Law, tmp_path: Path) -> None:
    plan = Scenario(law, (Arm((prefill(side_by_side([MATMUL], [COPY]), GRAPH, 2),)),), {}, blocks=2)
    files = []
    for place, seed in (("one", 5), ("two", 5), ("three", 6)):
        (tmp_path / place).mkdir()
        files.append([file.read_bytes() for file in play(plan, seed, tmp_path / place).exports[0]])
    assert files[0] == files[1]
    assert len({*files[0], *files[2]}) == 4


def test_replays_give_every_block_the_same_bytes(tmp_path: Path) -> None:
    plan = replace(SCENARIOS["replayed-bytes"].make(), blocks=2)
    for blocks in play(plan, 1, tmp_path).exports:
        assert len({file.read_bytes() for file in blocks}) == 1


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_accounts_of_a_scenario_add_up_and_agree_with_what_it_declares(name: str) -> None:
    plan = SCENARIOS[name].make()
    arms = [record(arm, plan.law, 0, "accounts", letter).accounts for letter, arm in enumerate(plan.arms[:2])]
    for phase, expected in plan.expected.items():
        a, b = (accounts[phase][-1] for accounts in arms)
        for account in (a, b):
            parts = [ran.solo for ran in account.kernels.values()]
            assert sum((*parts, account.overlap, account.copies, *account.idle.values())) == pytest.approx(account.time)
            assert min(account.lost, -account.gained, *account.idle.values()) >= 0
        sizes = causes(a, b, plan.arms[1].clock / plan.arms[0].clock)
        assert sum(sizes.values()) == pytest.approx(b.time - a.time)
        largest = max(CAUSES, key=lambda cause: abs(sizes[cause]))
        declared = {"plain_sharing": "overlap_gained", "drift": largest, "profiler": largest}.get(
            expected.dominant or "", expected.dominant
        )
        assert declared in (None, largest)
        assert all(abs(sizes[cause]) > 0.02 * a.time for cause in expected.named)


def test_copies_take_what_the_plan_gives_them() -> None:
    how = replace(GRAPH, copies=3, copy_ns=50_000)
    (account,) = record(Arm((prefill(chain(MATMUL), how, 2),), noise=QUIET), FAIR, 0, 1).accounts["prefill"]
    assert account.copies == pytest.approx(150_000, abs=2)


def test_a_slower_clock_is_no_loss_by_overlap() -> None:
    work = in_order(chain(MATMUL), side_by_side([MATMUL], [COPY, COPY]))
    fast, slow = (
        record(Arm((prefill(work, GRAPH, 2),), clock=clock, noise=QUIET), PAGES_BROKEN, 0, 1).accounts["prefill"][0]
        for clock in (1.0, 1.5)
    )
    assert slow.lost / fast.lost == pytest.approx(1.5, rel=1e-3)
    sizes = causes(fast, slow, 1.5)
    assert sizes["clocks"] == pytest.approx(0.5 * sum(ran.solo for ran in fast.kernels.values()))
    assert sizes["kernels_alone"] == pytest.approx(0, abs=1)


@pytest.mark.parametrize("law", LAW_NAMES)
def test_drawn_plans_lose_what_they_should_and_differ_by_seed(law: str) -> None:
    plans = [losing_plan(law, seed) for seed in range(4)]  # type: ignore[arg-type]
    assert len({plan.arms[0].phases[0].work for plan in plans}) == 4
    for plan in plans:
        account = without_noise(plan)
        assert account.lost >= LEAST_LOSS * sum(ran.solo for ran in account.kernels.values())


@dataclass
class Answered:
    """A scenario as it was played, and the answer about it."""

    plan: Scenario
    played: Played
    answer: Diff

    def wrong(self, expected: Expected) -> str:
        """What the judge finds wrong with the answer, were ``expected`` true."""
        (judged,) = judge(replace(self.plan, expected={"prefill": expected}), self.played, self.answer)
        return judged.wrong


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Answered:
    """A scenario whose first arm loses by overlap."""
    plan = SCENARIOS["two-matmuls-overflow-the-cache"].make()
    played = play(plan, 1, tmp_path_factory.mktemp("lost"))
    return Answered(plan, played, answer_to(played.exports))


def test_the_judge_accepts_a_right_answer(lost: Answered) -> None:
    assert lost.wrong(Expected("overlap_lost")) == ""


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (Expected("gaps"), "overlap_lost is named first, not gaps"),
        (Expected("overlap_lost", named=("copies",)), "copies is not named"),
        (Expected(None), "overlap_lost carries, though nothing does"),
        (Expected("overlap_lost", undecided=True), "b wins, though the recordings carry no verdict"),
        (Expected("overlap_lost", best="c"), "best arm b, not c"),
        (Expected("overlap_lost", serial="a"), "serial is predicted at +1,"),
    ],
)
def test_the_judge_refuses_an_answer_that_is_not_the_truth(lost: Answered, expected: Expected, found: str) -> None:
    assert found in lost.wrong(expected)


def test_the_judge_refuses_the_answer_about_other_arms(lost: Answered) -> None:
    swapped = replace(lost, answer=answer_to(lost.played.exports[::-1]))
    assert "a wins, though b is faster" in swapped.wrong(Expected("overlap_lost"))


def test_the_judge_refuses_a_loss_of_another_size(lost: Answered) -> None:
    accounts = [{"prefill": halved(of_arm["prefill"])} for of_arm in lost.played.accounts]
    other = replace(lost, played=lost.played._replace(accounts=accounts))
    assert "overlap_lost is -6" in other.wrong(Expected("overlap_lost"))


def halved(account: Account) -> Account:
    """The account with half of the loss."""
    return replace(account, lost=account.lost / 2)


def test_claims_are_found_where_something_differs_and_not_in_a_trace_against_itself(
    lost: Answered,
) -> None:
    assert {"prefill: b wins", "prefill: overlap_lost carries"} <= set(claims(lost.answer))
    assert claims(answer_to([lost.played.exports[0]] * 2)) == []


def test_targets_are_missed_by_one_wrong_scenario_and_by_too_many_seeds() -> None:
    inside, outside = Loss(0, "waves", 10, 10, 10, 9, 10.4), Loss(1, "waves", 10, 10, 9, 8, 9)
    silent, loud = Nothing(0, "waves", []), Nothing(1, "waves", ["prefill: a wins"])
    right, bad = (Shown("s", 0, [Judged("prefill", "", "", "", said)]) for said in ("", "no"))
    assert asked_of(200) == 182
    assert all(target.met for target in targets([right], [inside] * 182 + [outside] * 18, [silent] * 182 + [loud] * 18))
    one_short = targets([right, bad], [inside] * 181 + [outside] * 19, [silent] * 181 + [loud] * 19)
    assert [target.met for target in one_short] == [False, False, True, False]
    wide, none = Loss(0, "waves", 10, 10, 10, 9, 10.6), Loss(0, "waves", 10, 10, None, None, None)
    assert [target.met for target in targets([], [wide], [])] == [True, False]
    assert [target.met for target in targets([], [none] * 30, [])] == [False, False]


def test_all_scenarios_and_ten_seeds_meet_their_targets() -> None:
    """The proof in its short form; ``python scripts/prove.py`` is the long one."""
    assert prove.main(["--quick"]) == 0
