"""What a command could not do, as one clear line and an exit code."""

import errno
import json
import sys
from collections.abc import Callable
from functools import wraps
from traceback import walk_tb
from typing import ParamSpec

import typer

from anybatch.errors import AnybatchError, CorruptRecord, NotRecords, WillNotOverwrite

FINE, WRONG, COULD_NOT, INTERRUPTED = 0, 1, 2, 130

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

Given = ParamSpec("Given")


def reported(command: Callable[Given, int]) -> Callable[Given, None]:
    """Return a command that ends with its exit code, and with one line where it fails, never a traceback."""

    @wraps(command)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> None:
        try:
            code = command(*args, **kwargs)
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
                print(json.dumps({"error": text}))
            code = COULD_NOT
        raise typer.Exit(code)

    return run


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
        ways = "nothing was left behind, free some space or name another --to"
        return f"no room for the new files: {what}; {ways}"
    return f"`{error.filename}`: {what}" if error.filename else what
