"""The command line: `anybatch COMMAND …`. What a command needs is imported when it runs."""

import sys
from io import TextIOWrapper
from typing import Annotated

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
from anybatch.cli.failures import INTERRUPTED
from anybatch.cli.signals import clean_up_when_told_to_end

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("inspect", epilog=inspect.EXAMPLE)(inspect.inspect)
app.command("index", epilog=index.EXAMPLE)(index.index)
app.command("verify", epilog=verify.EXAMPLE)(verify.verify)
app.command("repair", epilog=repair.EXAMPLE)(repair.repair)
app.command("reshard", epilog=reshard.EXAMPLE)(reshard.reshard)
app.command("doctor", epilog=doctor.EXAMPLE)(doctor.doctor)
app.command("lint", epilog=lint.EXAMPLE)(lint.lint)
app.command("sweep", epilog=sweep.EXAMPLE)(sweep.sweep)
app.command("demo", epilog=demo.EXAMPLE)(demo.demo)
app.command("bench", epilog=bench.EXAMPLE)(bench.bench)
app.command("plan", epilog=plan.EXAMPLE)(plan.plan)
app.command("run", epilog=run.EXAMPLE, context_settings=SCRIPT_CONTEXT)(run.run)
app.command("launch", epilog=launch.EXAMPLE, context_settings=SCRIPT_CONTEXT)(launch.launch)


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
    for stream in (sys.stdout, sys.stderr):
        # a file's name can be any bytes, and a terminal can know ASCII alone
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="anybatch")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
