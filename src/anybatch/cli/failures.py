"""What a command could not do, as one clear line and an exit code."""

import errno
import json
import os
import sys
from collections.abc import Callable
from functools import wraps
from traceback import walk_tb
from typing import Any, ParamSpec

import typer

from anybatch.errors import AnybatchError, AnybatchWarning, CorruptRecord, NotRecords, WillNotOverwrite

FINE, WRONG, COULD_NOT, INTERRUPTED = 0, 1, 2, 130

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_WAYS_OUT = {
    errno.ENOENT: "check the path",
    errno.EACCES: "`ls -l` shows who may use it",
    errno.EPERM: "`ls -l` shows who may use it",
    errno.EISDIR: "name a file",
    errno.ENOTDIR: "name a folder, or one that can be made",
    errno.EROFS: "name a place that can be written",
}

Given = ParamSpec("Given")


def reported(command: Callable[Given, int]) -> Callable[Given, None]:
    """Return a command that ends with its exit code, and with one line where it fails, never a traceback."""

    @wraps(command)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
            # what cannot be printed is known here, and not when the interpreter ends
            sys.stdout.flush()
        except KeyboardInterrupt:
            complain("interrupted; nothing was left half-written")
            code = INTERRUPTED
        except BrokenPipeError:
            # whoever read our output has had enough of it: the framework ends us quietly
            raise
        except Exception as error:  # noqa: BLE001 - a traceback helps nobody on a command line
            text = explained(error)
            complain(text)
            if kwargs.get("as_json"):
                _print_document(text)
            code = COULD_NOT
        raise typer.Exit(code)

    return run


def _print_document(text: str) -> None:
    try:
        print(json.dumps({"error": text}), flush=True)
    except OSError:
        # nobody can be told there: what is left would be tried again, and told as a traceback, at the end
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - open until the process ends


def warned(others: Callable[..., None]) -> Callable[..., None]:
    """Return what shows warnings: ours in one line without a place in the code, those of others as before."""

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, AnybatchWarning):
            complain(str(message))
        else:
            others(message, category, *place, **more)

    return show


def complain(text: str) -> None:
    """Print one line for people, whatever the text holds."""
    print(f"anybatch: {' '.join(text.split())}", file=sys.stderr)


def explained(error: Exception) -> str:
    """Return what went wrong and the way out, in the words of the command line."""
    match error:
        case WillNotOverwrite():
            return f"`{error.file}` exists and nothing is overwritten; remove it, or name another --to"
        case CorruptRecord():
            where = f"`{error.file}` is damaged at byte {error.offset}, {error.length:,} bytes long"
            ways = "--on-corrupt skip leaves it out, `anybatch repair` writes a clean copy"
            return f"{where}: {error.reason}; {ways}"
        case NotRecords():
            return f"`{error.file}` holds no TFRecords: {error.why}; a narrower glob leaves it out"
        case AnybatchError():
            return str(error)
        case OSError():
            return _of_the_system(error)
        case ValueError() if str(error):
            return str(error)
    return _unforeseen(error)


def _unforeseen(error: Exception) -> str:
    """Return an error of which nobody has thought: what it is, and the line that raised it."""
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = list(walk_tb(error.__traceback__))
    return f"{told} (line {frames[-1][1]} of `{frames[-1][0].f_code.co_filename}`)" if frames else told


def _of_the_system(error: OSError) -> str:
    what = error.strerror or str(error)
    if error.errno in _FULL:
        ways = "nothing was left behind, free some space or write elsewhere"
        return f"no room for what is written: {what}; {ways}"
    told = f"`{error.filename}`: {what}" if error.filename else what
    return f"{told}; {_WAYS_OUT[error.errno]}" if error.errno in _WAYS_OUT else told
