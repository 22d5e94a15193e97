import subprocess
import sys
from pathlib import Path

ALLOWED = Path(__file__).parent / "not_in_the_module.txt"


def test_the_stub_of_the_native_module_says_what_the_module_has():
    options = ["--concise", "--ignore-unused-allowlist", "--allowlist", ALLOWED]
    ended = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "anybatch._native", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
