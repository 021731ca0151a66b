"""Which kernels ran beside each kernel instance."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from tracekit.analysis.overlap.pairs import meetings
from tracekit.intervals import Ints, distinct


class Companions(NamedTuple):
    """The set of kernels that ran beside each instance.

    ``of_instances`` gives its fingerprint, the same for the same kernels in every trace, 0 where there were none.
    ``members`` lists the kernels of each set: ``set``, ``group``, each once.
    """

    of_instances: pl.Series
    members: pl.DataFrame


def companions(kernels: pl.DataFrame, group: pl.Series) -> Companions:
    """Look over all kernels of a trace; ``group`` numbers the kernel of each instance.

    An instance that runs beside another of its own kernel has that kernel among its companions. Only what ran on
    the same device counts.
    """
    rows = kernels.select("start", "end", "device", "overlapped", group=group.cast(pl.Int64)).with_row_index("position")
    rows = rows.filter(pl.col("overlapped") > 0)
    size = int(group.max() or 0) + 1  # type: ignore[arg-type]
    met = [np.empty(0, np.int64)]
    for of_device in rows.partition_by("device", maintain_order=True):
        position, number = (of_device[column].to_numpy().astype(np.int64) for column in ("position", "group"))
        for left, right, _ in meetings(of_device):
            both = np.concatenate([position[left] * size + number[right], position[right] * size + number[left]])
            met.append(distinct(both))
    instance, companion = np.divmod(distinct(np.concatenate(met)), size)
    first = np.flatnonzero(np.diff(instance, prepend=-1))
    fingerprints = np.zeros(kernels.height, np.uint64)
    fingerprints[instance[first]] = _summed(fingerprint(companion), first)
    return Companions(pl.Series("set", fingerprints), _members(fingerprints, instance, companion, first))


def fingerprint(group: Ints) -> pl.Series:
    """Numbers of which the sum tells sets of kernels apart."""
    return pl.Series(group, dtype=pl.UInt32).hash(seed=0)


def _summed(values: pl.Series, first: Ints) -> Ints:
    return np.add.reduceat(values.to_numpy(), first) if first.size else first


def _members(fingerprints: npt.NDArray[np.uint64], instance: Ints, companion: Ints, first: Ints) -> pl.DataFrame:
    """The companions of one instance of each set."""
    sizes = np.diff(first, append=instance.size)
    examples = pl.DataFrame({"set": fingerprints[instance[first]], "at": first, "size": sizes})
    examples = examples.unique("set", keep="first", maintain_order=True)
    at, size = (examples[column].to_numpy() for column in ("at", "size"))
    where = np.arange(size.sum()) + np.repeat(at - (np.cumsum(size) - size), size)
    return pl.DataFrame({"set": examples["set"].to_numpy().repeat(size), "group": companion[where].astype(np.uint32)})
