import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.shard_files import PACK, left_behind, stream_of

COMMANDS = {
    "verify": [],
    "repair": ["--to", "new"],
    "reshard": ["--to", "new", "--shards", "5", "--shuffle"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Enough data that a command is still at work when it is told to end."""
    folder = tmp_path_factory.mktemp("signals")
    content = stream_of([os.urandom(500)] * 2000) * 60
    for number in range(4):
        (folder / f"plain-{number}.tfrecord").write_bytes(content)
    (folder / "packed.tfrecord.gz").write_bytes(PACK["GZIP"](content[: len(content) // 8]))
    return folder


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "terminated"]
)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_told_to_end_leaves_nothing(folder, command, number, code):
    before = {name for name in left_behind(folder) if not name.endswith(".abindex")}
    files = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    program = [sys.executable, "-m", "anybatch", command, *files, *COMMANDS[command]]
    with subprocess.Popen(
        program, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        wait_until_at_work(run, folder, command)
        run.send_signal(number)
        out, err = run.communicate(timeout=20)
    assert (run.returncode, out) == (code, ""), err
    assert "Traceback" not in err
    assert len(err.splitlines()) == (number == signal.SIGINT)
    assert {name for name in left_behind(folder) if not name.endswith(".abindex")} == before


def wait_until_at_work(run, folder, command):
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and run.poll() is None:
        if command == "verify":
            if any(name.startswith(str(folder)) for name in open_files(run.pid)):
                return
        elif any((folder / "new").glob(".*")):
            return
        time.sleep(0.005)


def open_files(process):
    for handle in Path(f"/proc/{process}/fd").iterdir():
        try:
            yield str(handle.readlink())
        except OSError:
            continue
