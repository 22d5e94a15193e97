"""The first lines that run in the child: join the memory group, then become the user's script.

`python -m anybatch.supervise.child SCRIPT ARGS…` is as `python SCRIPT ARGS…`, and leaves last words.
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType, TracebackType

from anybatch.handover import OWNER_VARIABLE, last_words_of, own_papers
from anybatch.supervise.environment import GROUP_VARIABLE, PARENT_VARIABLE

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run the script that the arguments name."""
    _die_with_the_supervisor()
    _join_group()
    script, *arguments = sys.argv[1:]
    os.environ[OWNER_VARIABLE] = str(os.getpid())
    try:
        become(script, arguments)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent wants to know
        _leave_last_words(error)
        _end_as_python_does(error)


def become(script: str, arguments: list[str]) -> None:
    """Run a script in this process as if Python had been started with it."""
    code = compile(Path(script).read_bytes(), script, "exec", dont_inherit=True)
    main_module = ModuleType("__main__")
    main_module.__file__ = script
    # multiprocessing starts its children from what `__main__` says of itself
    main_module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main_module
    sys.argv = [script, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(script).resolve().parent)
    exec(code, main_module.__dict__)  # noqa: S102 - running the user's script is the purpose


def _die_with_the_supervisor() -> None:
    # two children that write the same state would be worse than one that has to be started again
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = os.environ.pop(PARENT_VARIABLE, None)
    if parent is not None and os.getppid() != int(parent):
        os.kill(os.getpid(), signal.SIGKILL)


def _join_group() -> None:
    entrance = os.environ.pop(GROUP_VARIABLE, None)
    if entrance is not None:
        Path(entrance).write_text(str(os.getpid()))


def _leave_last_words(error: BaseException) -> None:
    # a script may fork, and what ends its children does not end it
    papers = own_papers()
    if papers is not None:
        last_words_of(error).write(papers)


def _end_as_python_does(error: BaseException) -> None:
    error.with_traceback(_of_the_script(error.__traceback__))
    sys.excepthook(type(error), error, error.__traceback__)
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    sys.exit(1)


def _of_the_script(frames: TracebackType | None) -> TracebackType | None:
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return frames


if __name__ == "__main__":
    main()
