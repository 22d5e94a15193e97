"""Arguments that several commands have in common."""

from typing import Annotated

import typer

PathsArgument = Annotated[
    list[str],
    typer.Argument(metavar="PATHS", help="Shards: files, or globs in quotes.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, for programs.")]
ToOption = Annotated[
    str,
    typer.Option("--to", metavar="DIR", help="The folder for the new files. Nothing in it is overwritten."),
]
