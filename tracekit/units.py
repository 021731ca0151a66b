"""Times and shares as people read them, and back."""

import re

LATEST = 1 << 62
"""Times (ns) are read up to here."""

LONGEST_NAME = 60
"""Characters of a name that a person is shown."""

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))


def duration(ns: float | None, digits: int = 3) -> str:
    """A time in the unit that suits it, to ``digits`` significant digits: 21.4 ms. ``-`` for None."""
    if ns is None:
        return "-"
    size = abs(ns)
    for scale, unit in _UNITS:
        if size >= scale * 0.9995 or unit == "ns":
            value = ns / scale
            decimals = max(0, digits - len(str(int(abs(value)))))
            return f"{value:.{0 if unit == 'ns' and float(ns).is_integer() else decimals}f} {unit}"
    raise AssertionError


def signed(ns: float) -> str:
    """A change of time, with its sign: +21.4 ms."""
    return ("+" if ns >= 0 else "-") + duration(abs(ns))


def percent(share: float | None, digits: int = 1) -> str:
    """A share as a percentage; ``-`` for None."""
    return "-" if share is None else f"{share * 100:.{digits}f} %"


def shortened(name: str) -> str:
    """A long name by its beginning and end."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 20]}...{name[-17:]}"


def parse_time(text: str) -> int:
    """Nanoseconds from ``1.5s``, ``200ms``, ``30us`` or a plain number of ns. Raises ValueError."""
    found = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*(s|ms|us|µs|ns)?\s*", text)
    if not found or (found[2] is None and "." in found[1]):
        raise ValueError(f"{text!r} is not a time: write 1.5s, 200ms, 30us or a number of ns")
    scale = {unit: size for size, unit in _UNITS}.get((found[2] or "ns").replace("µ", "u"), 1)
    time = round(float(found[1]) * scale)
    if abs(time) > LATEST:
        raise ValueError(f"{text!r} is beyond what a trace can hold")
    return time
