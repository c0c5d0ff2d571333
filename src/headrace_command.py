"""The installed command `headrace`: Ctrl-C ends it quietly while Python is still loading the rest, and while it exits.

It stands outside the package, because importing anything of that loads what `import headrace` does; and it takes
signals from the built-in module behind `signal`, because that loads some others. As soon as a verb is looked for,
`headrace.cli.interrupt` takes over.
"""

import _signal as signals  # type: ignore[import-not-found]
import os

INTERRUPTED = 130


def _end(_: int, __: object) -> None:
    """Nothing has begun, or all is done: there is nothing to clean up."""
    os.write(2, b"Interrupted.\n")
    os._exit(INTERRUPTED)


def main() -> int:
    """Run the command line and return the exit code."""
    # Whoever started this may have Ctrl-C ignored, as `nohup` and `&` in a script do.
    if signals.getsignal(signals.SIGINT) is signals.default_int_handler:
        signals.signal(signals.SIGINT, _end)
    from headrace.cli.main import main as run

    return run()
