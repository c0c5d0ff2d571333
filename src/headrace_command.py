"""The installed command `headrace`: Ctrl-C ends it quietly while Python is still loading the rest, and while it exits.

It stands outside the package, because importing anything of that loads what `import headrace` does. As soon as a verb
is looked for, `headrace.cli.interrupt` takes over.
"""

import os
import signal
from types import FrameType

INTERRUPTED = 130


def _end(_: int, __: FrameType | None) -> None:
    """Nothing has begun, or all is done: there is nothing to clean up."""
    os.write(2, b"Interrupted.\n")
    os._exit(INTERRUPTED)


def main() -> int:
    """Run the command line and return the exit code."""
    # Whoever started this may have Ctrl-C ignored, as `nohup` and `&` in a script do.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from headrace.cli.main import main as run

    return run()
