"""The supervisor as a process of its own, which holds a few MB however long it waits.

Started by `anybatch run`, in whose place it steps: reading the command line takes more memory than watching.
"""

import json
import os
import sys
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn

from anybatch.errors import AnybatchError
from anybatch.supervise.run import Settings, supervise
from anybatch.supervise.tell import Events, Lines

COULD_NOT = 2


def become(settings: Settings) -> NoReturn:
    """Replace this process by one that supervises."""
    sys.stdout.flush()
    sys.stderr.flush()
    told = json.dumps(asdict(settings), default=os.fspath)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "anybatch.supervise", told])  # noqa: S606


def main(told: str) -> int:
    """Supervise as told by `become`; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    settings = _settings(**json.loads(told))
    try:
        return supervise(settings, Events() if settings.script_prints_to_stderr else Lines())
    except (AnybatchError, OSError, ValueError) as error:
        sys.stderr.write(f"anybatch: {error}\n")
        if settings.script_prints_to_stderr:
            sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        return COULD_NOT


def _settings(*, arguments: list[str], report: str | None, folder: str | None, **others: object) -> Settings:
    paths = {"report": report and Path(report), "folder": folder and Path(folder)}
    return Settings(arguments=tuple(arguments), **paths, **others)  # type: ignore[arg-type]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
