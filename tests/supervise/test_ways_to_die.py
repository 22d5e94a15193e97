"""Every way to die is produced for real, in a process of its own."""

import os
import shlex
import subprocess
from dataclasses import dataclass

import pytest

from anybatch.supervise.own_group import own_group
from tests.supervise.supervised import Told, command, events_of, needs_group, supervised, write_script

CAN_MOUNT = (
    subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
    ).returncode
    == 0
)


@dataclass(frozen=True)
class Death:
    body: str
    causes: list
    code: int
    says: str
    options: tuple = ("--memory", "200MiB")
    group: bool = True


WAYS = {
    "raises an exception": Death(
        "train(); raise ValueError('wrong shape')", ["bug in the script"], 1, "ValueError: wrong shape"
    ),
    "is no Python": Death("def (", ["bug in the script"], 1, "SyntaxError"),
    "imports what is not there": Death(
        "train(); import nowhere_to_be_found", ["bug in the script"], 1, "No module"
    ),
    "ends with a code": Death("train(); sys.exit(3)", ["ended itself"], 3, "exit code 3"),
    "ends at once without a word": Death("train(); os._exit(7)", ["ended itself"], 7, "exit code 7"),
    "ends with a message": Death("train(); sys.exit('no data')", ["ended itself"], 1, "exit code 1"),
    "writes to a full disk": Death(
        "train(); open('/dev/full', 'w').write('x' * 9999)", ["disk full"], 1, "No space left on device"
    ),
    "writes more than TensorFlow may": Death(
        "train()\nclass ResourceExhaustedError(Exception): pass\n"
        "raise ResourceExhaustedError('logs/events; Disk quota exceeded')",
        ["disk full"],
        1,
        "quota",
    ),
    "opens more files than TensorFlow may": Death(
        "train()\nclass ResourceExhaustedError(Exception): pass\n"
        "raise ResourceExhaustedError('train.tfrecord; Too many open files')",
        ["bug in the script"],
        1,
        "Too many open files",
    ),
    "writes more than a file may hold": Death(
        "train(); resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "out = open('large', 'wb', buffering=0); out.write(b'x' * (1 << 20)); out.write(b'x')",
        ["disk full"],
        1,
        "File too large",
    ),
    "uses up its processor time": Death(
        "train(); resource.setrlimit(resource.RLIMIT_CPU, (1, 5))\nwhile True: pass",
        ["used up its allotment"],
        128 + 24,
        "processor time",
    ),
    "jumps to nowhere, with memory to spare": Death(
        "train(); ctypes.string_at(0)", ["crash"], 128 + 11, "not for want of memory"
    ),
    "aborts, with memory to spare": Death("train(); os.abort()", ["crash"], 128 + 6, "SIGABRT"),
    "is asked to end by somebody": Death(
        "train(); os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)", ["told to end"], 128 + 15, "SIGTERM"
    ),
    "is interrupted": Death("train(); raise KeyboardInterrupt", ["told to end"], 128 + 2, "SIGINT"),
    "does not fit even after planning": Death(
        "from anybatch.errors import DoesNotFit\ntrain(); raise DoesNotFit('one sample', 9 << 30, 1 << 30)",
        ["does not fit"],
        1,
        "one sample",
    ),
    "is killed by somebody once": Death(
        "train()\nif first_time(): os.kill(os.getpid(), signal.SIGKILL)",
        ["killed by somebody", "finished"],
        0,
        "signal 9",
    ),
    "gets a memory error, and is restarted smaller": Death(
        "part = train(step=orders.attempt)\nif part > 16: bytearray(1 << 50)",
        ["memory error", "memory error", "finished"],
        0,
        "at most 32 samples",
    ),
    "gets the framework's own error": Death(
        "class ResourceExhaustedError(Exception): pass\n"
        "if train() > 32: raise ResourceExhaustedError('OOM when allocating tensor')",
        ["memory error", "finished"],
        0,
        "OOM when allocating tensor",
    ),
    "is cut short in an update": Death(
        "from anybatch.train.refusals import UpdateCutShort\nif train() > 32: raise UpdateCutShort('OOM')",
        ["memory error", "finished"],
        0,
        "at most 32 samples",
    ),
    "aborts with memory nearly full": Death(
        "if train() > 32: block = hold(185); time.sleep(0.5); os.abort()",
        ["crashed for memory", "finished"],
        0,
        "probably because memory ran out",
    ),
    "jumps to nowhere with memory nearly full": Death(
        "if train() > 32: block = hold(185); time.sleep(0.5); ctypes.string_at(0)",
        ["crashed for memory", "finished"],
        0,
        "SIGSEGV",
    ),
    "runs out of address space in C++": Death(
        "if train() > 32:\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); import mmap\n"
        "    space = mmap.mmap(-1, 900 << 20); new = ctypes.CDLL('libstdc++.so.6')._Znwm\n"
        "    time.sleep(0.5); new.argtypes = [ctypes.c_size_t]; new(500 << 20)",
        ["crashed for memory", "finished"],
        0,
        "SIGABRT",
    ),
    "hangs": Death(
        "train()\nif first_time(): time.sleep(60)",
        ["hang", "finished"],
        0,
        "no sign of life",
        ("--patience", "1"),
    ),
    "outgrows the limit where no group can be made": Death(
        "part = train()\nblock = hold(part * 4); time.sleep(0.5)",
        ["over the limit", "finished"],
        0,
        "and was ended",
        group=False,
    ),
    "lets a child outgrow the limit where no group can be made": Death(
        "part = train()\n"
        "subprocess.run([sys.executable, '-c', f'import time; b = b\"x\" * ({part} << 22); time.sleep(1)'])",
        ["over the limit", "finished"],
        0,
        "and was ended",
        group=False,
    ),
    "is killed by somebody where no group can be made": Death(
        "train()\nif first_time(): time.sleep(0.3); os.kill(os.getpid(), signal.SIGKILL)",
        ["killed by somebody", "finished"],
        0,
        "signal 9",
        group=False,
    ),
    "is killed nearly full where no group can be made": Death(
        "if train() > 32: block = hold(180); time.sleep(0.5); os.kill(os.getpid(), signal.SIGKILL)",
        ["killed for memory", "finished"],
        0,
        "probably",
        group=False,
    ),
}

FULL_DISK = "train(); out = open('filler', 'wb', buffering=0)\nwhile True: out.write(b'x' * 4096)"

KILLED_BY_THE_KERNEL = {
    "asks for more than its group has": Death(
        "part = train()\nblock = hold(part * 4)",
        ["killed for memory", "finished"],
        0,
        "oom_kill counter rose",
    ),
    "lets a child ask for more": Death(
        "part = train()\nsubprocess.run([sys.executable, '-c', f'b = b\"x\" * ({part} << 22)'], check=True)",
        ["killed for memory", "finished"],
        0,
        "1 of its processes",
    ),
    "fills a folder that is memory": Death(
        "part = train()\n"
        "import tempfile; file = tempfile.TemporaryFile(dir='/dev/shm')\n"
        "for _ in range(4): file.write(bytes(part << 20))",
        ["killed for memory", "finished"],
        0,
        "oom_kill counter rose",
    ),
    "leaks": Death(
        "start = 0 if first_time() else 40\nheld = []\n"
        "for step in range(start, 60):\n    train(step=step + 1); held.append(hold(4)); time.sleep(0.1)",
        ["killed for memory", "finished"],
        0,
        "that is a leak",
    ),
    "tries parts before training that are too large": Death(
        "part = train(step=0, training=False, planning=True)\nblock = hold(part * 4)",
        ["killed for memory", "finished"],
        0,
        "at most 32 samples",
    ),
    "has only planned": Death(
        "train(step=0, part=0, training=False, planning=True); block = hold(400)",
        ["killed for memory"],
        128 + 9,
        "has not reached ab.fit",
    ),
    "never trains": Death("block = hold(400)", ["killed for memory"], 128 + 9, "has not reached ab.fit"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_script_gets_the_right_verdict_when_it(tmp_path, monkeypatch, way):
    check(tmp_path, monkeypatch, WAYS[way])


@needs_group
@pytest.mark.parametrize("way", KILLED_BY_THE_KERNEL)
def test_a_script_that_the_kernel_kills_gets_the_right_verdict_when_it(tmp_path, monkeypatch, way):
    check(tmp_path, monkeypatch, KILLED_BY_THE_KERNEL[way])


@needs_group
def test_a_kill_in_the_group_of_a_container_is_known_by_its_counter(tmp_path):
    """Where no group can be made below the container's, its own counter is read."""
    container = own_group(160 << 20)
    try:
        told = supervised(
            tmp_path,
            "part = train()\nblock = hold(part * 4)",
            group=False,
            first=lambda: container.entrance.write_text(str(os.getpid())),
        )
    finally:
        container.remove()
    assert told.causes() == ["killed for memory", "finished"], told
    assert "oom_kill counter around it rose" in told.ends()[0]["sentence"]


@pytest.mark.skipif(not CAN_MOUNT, reason="only root can make a disk that is really full")
def test_a_full_disk_is_named_even_if_the_state_lies_on_it_too(tmp_path):
    script = write_script(tmp_path, FULL_DISK)
    prepare = f"mount -t tmpfs -o size=400k small {tmp_path / 'small'} && cp {script} {tmp_path / 'small'}"
    (tmp_path / "small").mkdir()
    run = shlex.join([*command(), "script.py"])
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"{prepare} && cd {tmp_path / 'small'} && {run}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    told = Told(done.returncode, events_of(done.stdout), done.stderr)
    assert (told.causes(), told.code) == (["disk full"], 1), told


def check(folder, monkeypatch, death):
    monkeypatch.chdir(folder)
    told = supervised(folder, death.body, *death.options, group=death.group)
    assert told.causes() == death.causes, told
    assert death.says in " ".join(f"{end['sentence']}; {end['then']}" for end in told.ends())
    assert told.code == death.code
