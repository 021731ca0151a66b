"""``python -m tracekit.capture.annotate [--mode MODE] (SCRIPT | -m MODULE) [ARGS...]``."""

from tracekit.quiet_start import quietly_interrupted


def main() -> None:
    """Annotate what is asked for, then run it."""
    with quietly_interrupted():
        from tracekit.capture.annotate.request import prepared

        program = prepared()
    program.run()


if __name__ == "__main__":
    main()
