"""What runs in a worker before the user's script: joining the others, which has to come first.

`workers_boot.py SCRIPT ARGS…` is as `python SCRIPT ARGS…` in one of several workers.
"""

import runpy
import sys
from pathlib import Path
from types import TracebackType

from anybatch.train.workers import NobodyCame, PeerLost


def main() -> None:
    """Join the other workers, and become the script that the arguments name."""
    from anybatch.train.backends.tensorflow_workers import join

    sys.excepthook = _told
    join()
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


def _told(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
    """Print an error as Python does; that another worker is gone needs no traceback in this one."""
    if isinstance(error, PeerLost | NobodyCame):
        sys.stderr.write(f"{error}\n")
    else:
        sys.__excepthook__(kind, error, frames)


if __name__ == "__main__":
    main()
