"""The command line: `anybatch COMMAND …`. What a command needs is imported when it runs."""

import sys
import warnings
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from anybatch import __version__
from anybatch.cli import (
    bench,
    demo,
    doctor,
    index,
    inspect,
    launch,
    lint,
    plan,
    repair,
    reshard,
    run,
    sweep,
    verify,
)
from anybatch.cli.arguments import SCRIPT_CONTEXT
from anybatch.cli.explaining import PlainCommand, PlainGroup, unwrapped
from anybatch.cli.failures import INTERRUPTED, warned
from anybatch.cli.signals import clean_up_when_told_to_end

__all__ = ["app", "main"]

app = typer.Typer(
    cls=PlainGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _add(command: Callable[..., None], example: str, **settings: Any) -> None:
    name = command.__name__
    app.command(name, cls=PlainCommand, help=unwrapped(command), epilog=example, **settings)(command)


_add(inspect.inspect, inspect.EXAMPLE)
_add(index.index, index.EXAMPLE)
_add(verify.verify, verify.EXAMPLE)
_add(repair.repair, repair.EXAMPLE)
_add(reshard.reshard, reshard.EXAMPLE)
_add(doctor.doctor, doctor.EXAMPLE)
_add(lint.lint, lint.EXAMPLE)
_add(sweep.sweep, sweep.EXAMPLE)
_add(demo.demo, demo.EXAMPLE)
_add(bench.bench, bench.EXAMPLE)
_add(plan.plan, plan.EXAMPLE)
_add(run.run, run.EXAMPLE, context_settings=SCRIPT_CONTEXT)
_add(launch.launch, launch.EXAMPLE, context_settings=SCRIPT_CONTEXT)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"anybatch {__version__}")
        raise typer.Exit


@app.callback()
def _anybatch(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train at the batch size you want, in the memory you have.

    Exit codes: 0 fine, 1 found something wrong, 2 could not do it.
    """


def main() -> None:
    """Run a command and end the process with its exit code."""
    clean_up_when_told_to_end()
    warnings.showwarning = warned(warnings.showwarning)
    for stream in (sys.stdout, sys.stderr):
        # a file's name can be any bytes, and a terminal can know ASCII alone
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="anybatch")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
