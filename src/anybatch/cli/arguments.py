"""Arguments that several commands have in common."""

from enum import StrEnum
from typing import Annotated

import typer

PathsArgument = Annotated[
    list[str],
    typer.Argument(metavar="PATHS", help="Shards: files, or globs in quotes.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, for programs.")]


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
ToOption = Annotated[
    str,
    typer.Option("--to", metavar="DIR", help="The folder for the new files. Nothing in it is overwritten."),
]
