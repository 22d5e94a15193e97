"""`anybatch lint`: the known traps in a training script."""

from typing import Annotated

import typer

from anybatch.cli.arguments import JsonOption
from anybatch.cli.failures import reported
from anybatch.cli.findings import counted, exit_code, show_findings
from anybatch.cli.report import print_json, say

EXAMPLE = "Example:  anybatch lint train.py"


@reported
def lint(
    script: Annotated[
        str, typer.Argument(metavar="SCRIPT", help="A Python file or a notebook.", show_default=False)
    ],
    as_json: JsonOption = False,
) -> int:
    """Find the known traps in a training script: by reading it, never by running it.

    Each finding has its line, the reason, and the corrected lines. What depends on a size that the script
    does not show is a note.

    Exit code: 0 fine or only notes, 1 errors or warnings, 2 the script could not be read.
    """
    from dataclasses import asdict

    from anybatch.doctor import lint as look

    findings = look(script)
    if as_json:
        print_json({"file": script, "findings": [asdict(finding) for finding in findings]})
    else:
        show_findings(findings, script)
        say(f"{script}: {counted(findings)}")
    return exit_code(findings)
