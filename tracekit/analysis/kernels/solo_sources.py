"""Where the solo durations of each arm of a comparison come from."""

from typing import NamedTuple

import polars as pl

from tracekit.analysis.kernels.mixtures import Launched, mixtures, of_the_rest, turns
from tracekit.analysis.kernels.solo import alone, by_name, first_known
from tracekit.analysis.verdict.clocks import at_the_clock_of


class Ran(NamedTuple):
    """One trace of a comparison: its arm's ``letter``, whether that is eager, and its kernel instances."""

    letter: str
    eager: bool
    launched: Launched


class SoloDurations(NamedTuple):
    """Solo durations (solo.SOLO) by ``group`` and by ``kind``, and the kind of work that each instance is."""

    by_group: pl.DataFrame
    by_kind: pl.DataFrame
    kind: pl.Series


class SoloSources:
    """The solo durations of every trace of a comparison.

    They come from the eager arm, unless the trace is one of it; else from the same trace; else from where the kernel
    ran alone in another arm. Of an arm with several blocks it is the block of the same number, which was recorded at
    about the same time. What comes from another arm is brought to this one's clock.
    """

    def __init__(self, ran: list[Ran], names: pl.DataFrame) -> None:
        """``names`` gives the ``name`` of every ``group`` of any trace."""
        self._ran = ran
        self._beside = [_beside(i, [each.letter for each in ran]) for i in range(len(ran))]
        self._alone = [alone(of.launched.kernels, of.launched.kernels["group"], "same trace") for of in ran]
        self._from_eager = {
            j: self._of_eager(j, names) for i in range(len(ran)) if (j := self._eager_beside(i)) is not None
        }

    def of(self, i: int) -> SoloDurations:
        """Those of one trace."""
        eager, here = self._eager_beside(i), self._ran[i].launched
        others = [self._alone[j].with_columns(solo_from=_called(self._ran[j])) for j in self._beside[i] if j != eager]
        before = [] if eager is None else [self._from_eager[eager]]
        theirs = [at_the_clock_of(solo, self._alone[i]) for solo in (*before, *others)]
        solo = first_known(*theirs[: len(before)], self._alone[i], *theirs[len(before) :])
        kind = here.kernels["group"]
        if not self._beside[i]:
            return SoloDurations(solo, solo, kind)
        source = self._ran[self._beside[i][0] if eager is None else eager]
        borrowed = solo.filter(pl.col("solo_from") == _called(source))["group"]
        mixed = mixtures(here.kernels, source.launched.kernels, borrowed)
        told = turns(here, source.launched, solo, mixed)
        solo = of_the_rest(solo, mixed, here.kernels)
        if told is None:
            return SoloDurations(solo, solo, kind)
        return SoloDurations(solo, pl.concat([solo, told.solo]), told.kind)

    def _eager_beside(self, i: int) -> int | None:
        return None if self._ran[i].eager else next((j for j in self._beside[i] if self._ran[j].eager), None)

    def _of_eager(self, j: int, names: pl.DataFrame) -> pl.DataFrame:
        """Of the same kernel in the eager arm, else of its other launch configurations."""
        kernels = self._ran[j].launched.kernels
        same = self._alone[j].with_columns(solo_from=_called(self._ran[j]))
        return first_known(same, by_name(kernels, kernels["group"], names))


def _called(ran: Ran) -> pl.Expr:
    return pl.lit("eager arm" if ran.eager else f"arm {ran.letter}")


def _beside(i: int, letters: list[str]) -> list[int]:
    """For each other arm its block of the same number; else its first."""
    number = letters[:i].count(letters[i])
    blocks = {letter: [j for j, each in enumerate(letters) if each == letter] for letter in letters}
    return [of[number] if number < len(of) else of[0] for letter, of in blocks.items() if letter != letters[i]]
