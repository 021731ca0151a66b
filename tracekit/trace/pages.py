"""Integer columns of a SQLite table, decoded from its b-tree pages many rows at a time.

The layout of pages, cells and records is that of https://www.sqlite.org/fileformat2.html.
Nothing in a file is trusted: every position is kept within what was read, and what does not
fit together is left to SQLite to judge.
"""

import os
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

ROWID: Final = -1
"""In place of a position in the record: the row's id, which an INTEGER PRIMARY KEY stands for."""

_INTERIOR, _LEAF = 5, 13
_DEEPEST_TREE = 20
_PAGE_SIZES = [1 << bits for bits in range(9, 17)]
_BYTES_A_BLOCK = 1 << 22
_THREADS = min(4, os.cpu_count() or 1)

# What follows is by serial type: 0 is NULL, 1 to 6 are integers, 7 is REAL, 8 and 9 are the integers 0 and 1,
# from 12 on come BLOB and TEXT by length.
_NULL, _REAL, _ZERO, _ONE, _FIRST_BLOB = 0, 7, 8, 9, 12
_SIZES = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0])
_SIZES = np.concatenate([_SIZES, (np.arange(12, 128) - 12) // 2])
_SPARE_BITS = 64 - 8 * _SIZES[: _ONE + 1]

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]


class Unsupported(Exception):
    """The table holds something this decoder leaves to SQLite, or is damaged."""


def page_size(header: bytes) -> int:
    """Bytes a page, from the first 100 bytes of the file; 65536 is stored as 1."""
    return header[16] << 8 | header[17] << 16


def read_integers(descriptor: int, root_page: int, fields: Mapping[str, int]) -> pl.DataFrame:
    """Columns of a rowid table as Int64, in the order of row ids.

    ``fields`` gives each column's position in the stored record, or ``ROWID``. Raises Unsupported where a
    wanted value is not an integer or NULL, lies on an overflow page, or is not stored because its column
    was added later; where the table has no row ids; and where the pages do not fit together.
    """
    pages = _Pages(descriptor)
    leaves = pages.leaves(root_page)
    at_once = max(1, _BYTES_A_BLOCK // pages.size)
    blocks = [leaves[first : first + at_once] for first in range(0, len(leaves), at_once)]
    with ThreadPoolExecutor(_THREADS) as pool:
        decoded = pool.map(lambda block: _decoded(pages.read(block), pages.usable, fields.values()), blocks)
        columns = zip(*decoded, strict=True)
        return pl.DataFrame([pl.concat(parts).alias(name) for name, parts in zip(fields, columns, strict=True)])


class _Pages:
    """Reads pages of the file by number; numbers start at 1."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        header = os.pread(descriptor, 100, 0)
        self.size = page_size(header)
        if self.size not in _PAGE_SIZES:
            raise Unsupported("not a page size")
        self.usable = self.size - header[20]
        self._count = os.fstat(descriptor).st_size // self.size

    def read(self, numbers: Positions) -> Bytes:
        """The pages' bytes, one row a page, and one row of zeros: no value read ends beyond it."""
        if numbers.min() < 1 or numbers.max() > self._count:
            raise Unsupported("page number out of range")
        block = np.empty((len(numbers) + 1, self.size), np.uint8)
        block[-1] = 0
        breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
        for first, end in pairwise([0, *breaks.tolist(), len(numbers)]):
            run = block[first:end].reshape(-1).data
            if os.preadv(self._descriptor, [run], (int(numbers[first]) - 1) * self.size) != len(run):
                raise Unsupported("short read")
        return block

    def leaves(self, root: int) -> Positions:
        """Numbers of the leaf pages below ``root``, in the order of their row ids."""
        level = np.array([root], np.int64)
        for _ in range(_DEEPEST_TREE):
            if self.read(level[:1])[0, 0] == _LEAF:
                return level
            level = self._children(level)
            if len(level) > self._count:
                raise Unsupported("pages used twice")
        raise Unsupported("tree too deep")

    def _children(self, numbers: Positions) -> Positions:
        block = self.read(numbers)
        if (block[:-1, 0] != _INTERIOR).any():
            raise Unsupported("not a level of a rowid table")
        cells, counts = _cells(block, header_size=12)
        rightmost = np.arange(len(numbers)) * self.size + 8
        pointers = np.insert(cells, np.cumsum(counts), rightmost)
        return _gathered(block.ravel(), pointers, ">u4").astype(np.int64)


def _cells(block: Bytes, header_size: int) -> tuple[Positions, Positions]:
    """Positions in the block of the cells of its pages, and how many each page has."""
    size = block.shape[1]
    counts = block[:-1, 3:5].astype(np.int64) @ (256, 1)
    most = counts.max()
    if header_size + 2 * most > size:
        raise Unsupported("too many cells for a page")
    offsets = block[:-1, header_size : header_size + 2 * most].copy().view(">u2")
    used = np.arange(most) < counts[:, None]
    if (used & (offsets >= size)).any():
        raise Unsupported("cell outside its page")
    starts = (offsets + np.arange(len(counts))[:, None] * size)[used]
    return starts, counts


def _decoded(block: Bytes, usable: int, wanted: Collection[int]) -> list[pl.Series]:
    """The wanted fields of all rows on a block of leaf pages."""
    if (block[:-1, 0] != _LEAF).any():
        raise Unsupported("leaves at several depths")
    flat = block.ravel()
    cells, _ = _cells(block, header_size=8)
    if not len(cells):
        return [pl.Series(dtype=pl.Int64)] * len(wanted)
    payload, after_payload = _varints(flat, cells)
    rowids, record = _varints(flat, after_payload)
    types, body = _record_headers(flat, record, field_count=max(0, *wanted) + 1)
    fields = {ROWID: pl.Series(rowids)}
    for position, field_types in enumerate(types):
        least, most = field_types.min(), field_types.max()
        alike = least == most
        if position in wanted:
            fields[position] = _integers(flat, body, field_types, least, most)
        body = body + _sizes(least if alike else field_types)
    least_local = (usable - 12) * 32 // 255 - 23
    on_page = np.where(payload <= usable - 35, payload, least_local)
    size = block.shape[1]
    page_end = (cells | size - 1) + 1 - (size - usable)
    if (body > record + on_page).any() or (record + on_page > page_end).any():
        raise Unsupported("values on overflow pages, or beyond their cell")
    return [fields[position] for position in wanted]


def _record_headers(flat: Bytes, record: Positions, field_count: int) -> tuple[NDArray[np.integer], Positions]:
    """Serial types, one row a field, and where the fields' values begin."""
    header_size = flat.take(record, mode="clip")
    if field_count > 126 or (header_size <= field_count).any() or (header_size > 127).any():
        raise Unsupported("fields not stored, or too many")
    body = record + header_size
    headers = _gathered(flat, record + 1, f"V{field_count}").view(np.uint8)
    types = np.ascontiguousarray(headers.reshape(-1, field_count).T)
    if types.max() < 128:
        return types, body
    wide = np.empty(types.shape, np.int64)
    at = record + 1
    for field in wide:
        field[:], at = _varints(flat, at)
    if (at > body).any() or wide.min() < 0 or wide.max() > 1 << 32:
        raise Unsupported("fields not stored, or too long")
    return wide, body


def _sizes(types: NDArray[np.integer]) -> NDArray[np.int64]:
    if types.dtype == np.uint8:
        return _SIZES.take(types)
    return np.where(types < _FIRST_BLOB, _SIZES.take(types, mode="clip"), (types - _FIRST_BLOB) // 2)


def _integers(flat: Bytes, at: Positions, types: NDArray[np.integer], least: int, most: int) -> pl.Series:
    if most > _ONE or (least <= _REAL <= most and (types == _REAL).any()):
        raise Unsupported("values that are not integers")
    if most == _NULL:
        return pl.repeat(None, len(at), dtype=pl.Int64, eager=True)
    if least >= _ZERO:
        values = (types == _ONE).astype(np.int64)
    elif most == 1:
        values = flat.view(np.int8).take(at, mode="clip").astype(np.int64)
    else:
        values = _gathered(flat, at, ">i8").astype(np.int64)
        values >>= _SPARE_BITS[least] if least == most else _SPARE_BITS.take(types)
        if most >= _ZERO:
            np.copyto(values, types == _ONE, where=types >= _ZERO)
    column = pl.Series(values)
    return column.set(pl.Series(types == _NULL), None) if least == _NULL else column


def _varints(flat: Bytes, at: Positions) -> tuple[NDArray[np.int64], Positions]:
    """The variable-length integers at these positions, and the positions after them."""
    byte = flat.take(at, mode="clip")
    value = (byte & 127).astype(np.int64)
    at = at + 1
    more = byte > 127
    for place in range(2, 10):
        if not more.any():
            break
        byte = flat.take(at, mode="clip")
        longer = value << 7 | byte & 127 if place < 9 else value << 8 | byte
        value = np.where(more, longer, value)
        at = at + more
        more = more & (byte > 127)
    return value, at


def _gathered(flat: Bytes, at: Positions, dtype: str) -> NDArray[Any]:
    """The values of ``dtype`` that begin at these positions, aligned or not."""
    size = np.dtype(dtype).itemsize
    windows = np.ndarray((flat.size - size + 1,), f"V{size}", flat, strides=(1,))
    return windows[np.minimum(at, windows.size - 1)].view(dtype)
