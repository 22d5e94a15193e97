"""Run the blocks of some pages one after the other in this process, each page in a folder of its own."""

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory

import anybatch as ab
from tests.docs.blocks import DOCS, ROOT, blocks_of
from tests.docs.scenes import scene

MOST_SECONDS = 120


def main():
    """Print page → what went wrong, for those where something did."""
    failures = {}
    for name in sys.argv[1:]:
        with TemporaryDirectory() as folder:
            os.chdir(folder)
            trouble = run_page(ROOT / name)
            os.chdir(ROOT)
        if trouble:
            failures[name] = trouble
    print("\n" + json.dumps(failures), flush=True)
    # threads of frameworks have nothing more to say
    os._exit(0)


def run_page(page):
    """Run all blocks of a page; return what went wrong first."""
    names = {"__name__": "__main__"}
    blocks = blocks_of(page)
    try:
        if page.parent == DOCS / "codes":
            names |= scene("".join(block.code for block in blocks))
        given = names.get("data")
        for block in blocks:
            _run(block, page, names)
        if names.get("data") is not given:
            _use(names["data"])
    except (Exception, SystemExit):  # noqa: BLE001 (whatever a page does is its result)
        return traceback.format_exc(limit=-3)
    return ""


def _use(data):
    """Take the first element of a stream that a page has described: until then nothing has run."""
    if isinstance(data, ab.Stream):
        next(iter(data))


def _run(block, page, names):
    if block.title is not None:
        Path(block.title).parent.mkdir(parents=True, exist_ok=True)
        Path(block.title).write_text(block.code)
    elif block.language == "python":
        # so many empty lines that a traceback names the page's own
        exec(compile("\n" * block.line + block.code, page.name, "exec"), names)
    elif block.language == "console":
        for line in block.code.splitlines():
            if line.startswith("$ "):
                _shell(line[2:], page, block.line)
    elif block.language == "sh":
        _shell(block.code, page, block.line)
    else:
        raise ValueError(f"{page.name}, line {block.line}: nobody runs blocks of {block.language!r}")


def _shell(command, page, line):
    """Run a command; commands that found something wrong end with 1 and have worked."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
    if ended.returncode > 1 or "Traceback" in ended.stderr:
        raise RuntimeError(f"{page.name}, line {line}: {command}\n{ended.stdout}{ended.stderr}")


if __name__ == "__main__":
    main()
