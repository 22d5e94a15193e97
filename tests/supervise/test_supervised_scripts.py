import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anybatch.memory import held
from tests.supervise.supervised import MB, command, events_of, needs_group, supervised, write_script

SAY_WHO = """
import json
seen = [sys.argv[1:], __name__, __file__, sys.path[0], type(__builtins__).__name__]
print(json.dumps(seen), file=sys.stderr)
"""
SPAWN = """
import multiprocessing
def square(x): return x * x
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(square, [3, 4]), file=sys.stderr)
"""


def waiting(script, *options, **more):
    """Start a script that says when it is ready, and return the supervisor once it has."""
    run = subprocess.Popen(
        [*command(*options), str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )
    line = run.stderr.readline()
    assert line.startswith("ready"), line + run.stderr.read()
    return run, int(line.split()[1])


READY = "train(); print('ready', os.getpid(), file=sys.stderr, flush=True)\n"


def test_the_script_sees_what_it_would_see_without_a_supervisor(tmp_path):
    told = supervised(tmp_path, SAY_WHO, arguments=["--memory", "7", "-h"])
    plain = subprocess.run(
        [sys.executable, tmp_path / "script.py", "--memory", "7", "-h"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert json.loads(told.err) == json.loads(plain.stderr)
    assert told.code == 0


def test_a_traceback_shows_the_script_alone(tmp_path):
    told = supervised(tmp_path, "def inner(): 1 / 0\ninner()")
    lines = [line for line in told.err.splitlines() if line.lstrip().startswith("File")]
    assert len(lines) == 2
    assert all(str(tmp_path) in line for line in lines)


def test_processes_can_be_spawned_by_the_script(tmp_path):
    assert supervised(tmp_path, SPAWN).err.strip() == "[9, 16]"


STATE_OF_CHILDREN = """
ask = "from anybatch.handover import received_orders as o; print(o().state_folder, o().limit_bytes > 0)"
subprocess.run([sys.executable, "-c", ask], stdout=sys.stderr, check=True)
child = os.fork()
if not child:
    print(Heartbeat.of_this_process().heard, received_orders().state_folder, file=sys.stderr, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(heart.heard, bool(orders.state_folder), file=sys.stderr)
"""


def test_the_state_and_the_heartbeat_belong_to_the_script_and_not_to_what_it_starts(tmp_path):
    told = supervised(tmp_path, STATE_OF_CHILDREN)
    assert told.err.splitlines() == ["None True", "False None", "True True"]


def test_what_nohup_ignores_ends_nobody(tmp_path):
    script = write_script(tmp_path, READY + "time.sleep(1)")
    run, _ = waiting(script, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    run.send_signal(signal.SIGHUP)
    out, _ = run.communicate(timeout=20)
    assert [event["cause"] for event in events_of(out) if event["event"] == "ended"] == ["finished"]
    assert run.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_pass_through_and_end_both(tmp_path, number):
    script = write_script(tmp_path, READY + "time.sleep(60)")
    # the tests themselves may run under nohup
    run, child = waiting(script, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    run.send_signal(number)
    out, _ = run.communicate(timeout=20)
    assert run.returncode == 128 + number
    assert [event["cause"] for event in events_of(out) if event["event"] == "ended"] == ["told to end"]
    assert not Path(f"/proc/{child}").exists()


def test_a_script_may_answer_a_signal_by_itself(tmp_path):
    body = "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5))\n" + READY + "time.sleep(60)"
    run, _ = waiting(write_script(tmp_path, body))
    run.send_signal(signal.SIGUSR1)
    run.communicate(timeout=20)
    assert run.returncode == 5


def test_a_halted_script_does_not_hang(tmp_path):
    run, child = waiting(write_script(tmp_path, READY + "time.sleep(1)"), "--patience", "4")
    os.kill(child, signal.SIGSTOP)
    time.sleep(5.5)
    os.kill(child, signal.SIGCONT)
    out, _ = run.communicate(timeout=30)
    assert [event["cause"] for event in events_of(out) if event["event"] == "ended"] == ["finished"]


def test_a_script_halted_together_with_its_supervisor_does_not_hang(tmp_path):
    run, child = waiting(write_script(tmp_path, READY + "time.sleep(2)"), "--patience", "4")
    for process in (child, run.pid):
        os.kill(process, signal.SIGSTOP)
    time.sleep(6)
    for process in (child, run.pid):
        os.kill(process, signal.SIGCONT)
    out, _ = run.communicate(timeout=30)
    assert [event["cause"] for event in events_of(out) if event["event"] == "ended"] == ["finished"]


FORKED = """
kept = hold(150)
children = []
for _ in range(4):
    children.append(os.fork())
    if not children[-1]:
        time.sleep(1.5)
        os._exit(0)
for child in children:
    os.waitpid(child, 0)
"""


def test_pages_that_forked_processes_share_count_once(tmp_path):
    told = supervised(tmp_path, FORKED, "--memory", "400MiB", group=False)
    assert told.causes() == ["finished"]


def test_the_supervisor_is_small(tmp_path):
    run, _ = waiting(write_script(tmp_path, READY + "sys.stdin.read()"), stdin=subprocess.PIPE)
    time.sleep(1)
    small = held(run.pid).counted_bytes
    run.communicate(timeout=20)
    assert small < 20 * MB


def test_the_child_dies_with_its_supervisor_and_the_next_start_says_so(tmp_path):
    (tmp_path / "script").mkdir()
    body = READY + "sys.exit(0) if Path('again').exists() else time.sleep(60)"
    script = write_script(tmp_path / "script", body)
    script.write_text("from pathlib import Path\n" + script.read_text())
    options = ["--folder", tmp_path / "volume"]
    run, child = waiting(script, *options, cwd=tmp_path)
    run.kill()
    run.communicate(timeout=20)
    wait_until(lambda: not Path(f"/proc/{child}").exists())
    (tmp_path / "again").touch()
    done = subprocess.run(
        [*command(*options), str(script)], capture_output=True, check=True, text=True, cwd=tmp_path
    )
    assert "ended together with its supervisor" in events_of(done.stdout)[0]["text"]
    # a container that begins anew has nothing but what lies on the volume
    assert [entry.name for entry in (tmp_path / "script").iterdir()] == ["script.py"]


def test_after_dying_full_with_its_supervisor_the_next_start_is_smaller(tmp_path):
    body = (
        "train(held_bytes=orders.limit_bytes - 1)\nprint('ready', os.getpid(), file=sys.stderr, flush=True)\n"
        "if orders.largest_part is None: time.sleep(60)"
    )
    script = write_script(tmp_path, body)
    run, child = waiting(script, "--memory", "1GiB")
    run.kill()
    run.communicate(timeout=20)
    wait_until(lambda: not Path(f"/proc/{child}").exists())
    run, _ = waiting(script, "--memory", "1GiB")
    out, _ = run.communicate(timeout=20)
    assert [event["largest_part"] for event in events_of(out) if event["event"] == "began"] == [32]


def test_what_was_learnt_before_an_interruption_is_kept_until_there_is_more_memory(tmp_path):
    body = (
        "if train() > 32: raise MemoryError\n"
        "if not first_time(): os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)"
    )
    assert supervised(tmp_path, body, "--memory", "1GiB").parts() == [None, 32]
    assert supervised(tmp_path, "train()", "--memory", "1GiB").parts() == [32]
    assert supervised(tmp_path, body, "--memory", "1GiB").parts() == [None, 32]
    assert supervised(tmp_path, "train()", "--memory", "2GiB").parts() == [None]


def test_the_same_command_is_not_supervised_twice(tmp_path):
    script = write_script(tmp_path, READY + "sys.stdin.read()")
    run, _ = waiting(script, stdin=subprocess.PIPE)
    second = subprocess.run([*command(), str(script)], capture_output=True, check=False, text=True)
    run.communicate(timeout=20)
    assert (run.returncode, second.returncode) == (0, 2)
    assert "runs already" in second.stderr


def test_a_run_that_finishes_leaves_nothing_beside_the_script(tmp_path):
    supervised(tmp_path, "train()")
    assert [entry.name for entry in tmp_path.iterdir()] == ["script.py"]


@pytest.mark.parametrize(
    "group", [False, pytest.param(True, marks=needs_group)], ids=["watched", "in a group"]
)
def test_no_process_is_left_when_a_script_is_restarted(tmp_path, group):
    body = (
        "import pathlib\nif first_time():\n"
        "    child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "    pathlib.Path(__file__).with_name('left').write_text(str(child.pid)); train()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "left = int(pathlib.Path(__file__).with_name('left').read_text())\n"
        "stat = pathlib.Path(f'/proc/{left}/stat')\n"
        "sys.exit(stat.exists() and stat.read_text().split()[2] != 'Z')"
    )
    told = supervised(tmp_path, body, group=group)
    assert (told.causes(), told.code) == (["killed by somebody", "finished"], 0), told


@needs_group
def test_no_memory_group_is_left(tmp_path):
    from anybatch.memory import groups_of

    def left():
        """Return the groups whose supervisor is gone; others run beside this one."""
        names = {
            entry.name for entry in groups_of()[0].folder.iterdir() if entry.name.startswith("anybatch-")
        }
        return {name for name in names if not Path("/proc", name.split("-")[1]).exists()}

    before = left()
    supervised(tmp_path, "if train() > 32: block = hold(200)", "--memory", "100MiB")
    supervised(tmp_path, "1 / 0")
    assert left() <= before


def test_a_script_that_is_not_there_is_said_in_one_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "anybatch", "run", tmp_path / "nowhere.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "nowhere.py" in done.stderr


def test_the_report_tells_every_attempt(tmp_path):
    report = tmp_path / "report.html"
    body = "part = train(); time.sleep(0.5)\nif part > 16: raise MemoryError('a <tensor>')"
    told = supervised(tmp_path, body, "--report", report)
    restarts = [event["restarts"] for event in told.events if event["event"] == "sample"]
    assert (restarts[0], restarts[-1]) == (0, 2)
    page = report.read_text()
    assert page.count("<polyline") == 3
    # each attempt's parts as steps, and what they were at their heights
    assert re.findall(r'class="rows".*>(\d+)<', page) == ["64", "32", "16"]
    assert page.count('<path class="part"') == 3
    assert "a &lt;tensor&gt;" in page
    assert "parts of at most 16 samples" in page
    # dark where the reader's screen is, and no wider than a phone
    assert "prefers-color-scheme: dark" in page
    assert 'name="viewport"' in page


def test_a_report_that_cannot_be_written_does_not_change_how_the_script_ended(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    told = supervised(tmp_path, f"os.rmdir({str(gone)!r}); sys.exit(3)", "--report", gone / "report.html")
    assert told.code == 3
    assert told.events[-1]["event"] == "over"


def test_what_ends_a_forked_child_is_not_what_ended_the_script(tmp_path):
    forking = (
        "child = os.fork()\nif not child: raise ValueError('in the child')\nos.waitpid(child, 0); sys.exit(3)"
    )
    told = supervised(tmp_path, forking)
    assert told.code == 3
    assert "ValueError" not in told.ends()[-1]["sentence"]


def test_people_get_one_line_per_death(tmp_path):
    script = write_script(tmp_path, "if train() > 32: raise MemoryError")
    done = subprocess.run(
        [sys.executable, "-m", "anybatch", "run", str(script)], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("anybatch: ")]
    assert len([line for line in lines if "memory ran out" in line]) == 1
    assert "restarted once" in lines[-1]


def test_people_get_a_summary_of_a_run_in_which_nothing_happened(tmp_path):
    # of little memory, and for a while of any, the kernel's statistics of a group say nothing
    script = write_script(tmp_path, "train(); block = hold(200); time.sleep(2.5)")
    done = subprocess.run(
        [sys.executable, "-m", "anybatch", "run", str(script)], capture_output=True, text=True, check=False
    )
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("anybatch: ")]
    assert re.fullmatch(r"anybatch: no restart; peak [\d.]+ MiB of [\d.]+ GiB; \d+ steps in \d+ s", line)


def wait_until(holds):
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it never came true")
