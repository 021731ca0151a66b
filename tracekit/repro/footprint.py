"""The registers and shared memory that a stand-in is compiled to have."""

from typing import NamedTuple

from tracekit.repro.model import Body, KernelFacts

UNIT = 8
"""Registers are given to threads in units of so many (CUDA C++ Programming Guide, compute capabilities): a stand-in
with as many units as the traced kernel occupies the GPU alike."""

FREE = 32
"""Up to so many registers a thread, an SM of 64 Ki registers runs 2048 threads, all it ever does: fewer change
nothing."""

MOST = 255
"""The most registers of a thread."""

OVERHEAD = 6
"""Registers that holding the others takes: addresses and what the compiler keeps."""

MOST_STATIC = 48 << 10
"""Bytes of static shared memory that a block can have."""


class Variant(NamedTuple):
    """A stand-in as compiled: at most ``most`` registers, of which ``held`` are made to be live at once."""

    body: Body
    most: int
    held: int
    static_smem: int


def variant_of(kernel: KernelFacts) -> Variant:
    """The variant with this kernel's footprint; without a bound where its registers are unknown."""
    static = kernel.static_smem or 0
    if kernel.registers is None:
        return Variant(kernel.body, MOST, 0, static)
    most = min(MOST, max(FREE, allocated(kernel.registers)))
    return Variant(kernel.body, most, most - OVERHEAD if most > FREE else 0, static)


def allocated(registers: int) -> int:
    """Registers set aside for a thread that uses so many."""
    return -(-registers // UNIT) * UNIT


def same_footprint(traced: int, compiled: int) -> bool:
    """Whether a kernel with ``compiled`` registers occupies the GPU as one with ``traced``."""
    return max(FREE, allocated(traced)) == max(FREE, allocated(compiled))
