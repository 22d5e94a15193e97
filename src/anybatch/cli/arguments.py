"""Arguments that several commands have in common."""

import errno
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

PathsArgument = Annotated[
    list[str],
    typer.Argument(metavar="PATHS", help="Shards: files, or globs in quotes.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, for programs.")]


ScriptArgument = Annotated[str, typer.Argument(metavar="SCRIPT", help="A Python script, as it is.")]
ScriptArguments = Annotated[
    list[str] | None, typer.Argument(metavar="ARGS…", help="Its arguments.", show_default=False)
]
RetriesOption = Annotated[int, typer.Option(min=0, help="How many restarts there may be in all.")]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Where state and papers of the run are kept, such as a volume that outlives the container.",
        show_default="beside the script",
    ),
]
SCRIPT_CONTEXT = {"allow_interspersed_args": False}
"""Options behind the script are its own."""


def existing(script: str) -> str:
    """Return a script that can be read; else the system's own error names it."""
    with Path(script).open("rb"):
        return script


def refuse_unwritable(file: str | os.PathLike[str] | None) -> None:
    """Raise what the system would say of a file that cannot be written, before work is done for it."""
    if file is None:
        return
    file = os.fspath(file)
    folder = Path(file).parent
    if Path(file).is_dir():
        raise _of_the_system(errno.EISDIR, file or ".")
    if not folder.is_dir():
        raise _of_the_system(errno.ENOTDIR if folder.exists() else errno.ENOENT, str(folder))
    if not os.access(file if Path(file).exists() else folder, os.W_OK):
        raise _of_the_system(errno.EACCES, file)


def _of_the_system(number: int, file: str) -> OSError:
    return OSError(number, os.strerror(number), file)


class EngineName(StrEnum):
    """Who can do the work of a job."""

    LOCAL = "local"
    RAY = "ray"


EngineOption = Annotated[
    EngineName | None,
    typer.Option(
        help="Work as a job that the same command continues after a stop: a task per shard, on threads here "
        "(local) or on a Ray cluster (ray).",
        show_default="threads here, nothing kept of an unfinished run",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT", help="The Ray cluster.", show_default="RAY_ADDRESS, else one is started here"
    ),
]


def _named_folder(folder: str) -> str:
    # what a shell makes of a variable that is not set
    if not folder:
        raise typer.BadParameter("it names no folder; `--to .` is the one you are in")
    return folder


ToOption = Annotated[
    str,
    typer.Option(
        "--to",
        metavar="DIR",
        help="The folder for the new files. Nothing in it is overwritten.",
        callback=_named_folder,
    ),
]
