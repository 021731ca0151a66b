"""One exception family; each member carries the exit code a command ends with."""


class TracekitError(Exception):
    """What is wrong and how to mend it, in one line a person can act on."""

    exit_code = 3


class WrongUsage(TracekitError):
    """The command line asks for something that cannot be done (exit code 2)."""

    exit_code = 2


class UnusableInput(TracekitError):
    """The input is missing, damaged, foreign or in use (exit code 3)."""

    exit_code = 3


class OutsideProgramFailed(TracekitError):
    """nsys, nvcc or another program did not do its part (exit code 4)."""

    exit_code = 4


GATE_TRIPPED = 1
"""Exit code of a comparison whose ``--fail-on`` condition came true."""
