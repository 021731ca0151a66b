"""The ``tracekit`` program, also as ``python -m tracekit``."""

from tracekit.quiet_start import quietly_interrupted


def main() -> None:
    """Run the command line."""
    with quietly_interrupted():
        from tracekit.cli import main as run_command_line
    run_command_line()


if __name__ == "__main__":
    main()
