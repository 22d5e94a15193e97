"""`anybatch run`: a script that survives running out of memory."""

from pathlib import Path
from typing import Annotated

import typer

from anybatch.cli.arguments import (
    FolderOption,
    RetriesOption,
    ScriptArgument,
    ScriptArguments,
    existing,
    refuse_unwritable,
)
from anybatch.cli.failures import reported

EXAMPLE = "Example:  anybatch run --memory 2GiB train.py --epochs 10"


@reported
def run(
    script: ScriptArgument,
    arguments: ScriptArguments = None,
    *,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="What script and children may hold; default: what is there."),
    ] = None,
    retries: RetriesOption = 10,
    folder: FolderOption = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An HTML timeline of memory, restarts and parts.")
    ] = None,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="How long training may give no sign of life.")
    ] = 600.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON event per line on stdout; the script prints to stderr.")
    ] = False,
) -> int:
    """Run a training script, and start it again when it ran out of memory or was killed.

    Each death gets one line: why, by which evidence, and what happens next; the end has one with restarts,
    peak and steps. A restart continues from the last state of ab.fit, with smaller parts if memory was the
    reason. Bugs in the script are not restarted. On a terminal the window's title shows step, memory and
    restarts, or the last line if the script prints into a file.

    Exit code: the script's own; 128 + N if signal N ended it; 2 if it could not be started.
    """
    from anybatch.supervise import Settings
    from anybatch.supervise.__main__ import become
    from anybatch.units import parse_size

    refuse_unwritable(report)
    settings = Settings(
        script=existing(script),
        arguments=tuple(arguments or ()),
        memory_bytes=None if memory is None else parse_size(memory),
        retries=retries,
        report=report,
        folder=folder,
        patience_seconds=patience,
        script_prints_to_stderr=as_json,
    )
    become(settings)
