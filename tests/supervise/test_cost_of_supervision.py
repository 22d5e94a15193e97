"""What supervision and checkpoints at the default interval cost, side by side with the plain script."""

import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from tests.supervise.supervised import command, events_of

SCRIPT = Path(__file__).with_name("timed_training.py")
ROUNDS = 7
ALLOWED = 0.02


@pytest.mark.soak
def test_supervision_and_checkpoints_cost_less_than_two_per_cent(tmp_path, capsys):
    script = tmp_path / SCRIPT.name
    script.write_text(SCRIPT.read_text())
    commands = {"plain": [sys.executable, script], "supervised": [*command(), script]}
    spent = {name: [] for name in commands}
    for number in range(ROUNDS):
        # whoever comes first meets a machine in another state: they take turns
        for name in sorted(commands, reverse=bool(number % 2)):
            done = finished(commands[name])
            spent[name].append((told(done, "processor")[0], told(done, "seconds")[0]))
    with capsys.disabled():
        print(f"\n{spent}")
        costs = [cost(spent, which) for which in (0, 1)]
        print("{:+.2%} of processor time, {:+.2%} by the clock, medians of {}".format(*costs, ROUNDS))
    # the clock of a machine that others use as well cannot tell a per cent: runs differ by a fifth
    assert costs[0] < ALLOWED + spread([processor for processor, _ in spent["plain"]])


@pytest.mark.soak
def test_a_restart_takes_two_seconds_besides_imports(tmp_path, capsys):
    script = tmp_path / SCRIPT.name
    script.write_text(SCRIPT.read_text())
    done = finished([*command(), script, "die"])
    events = events_of(done.stdout)
    ended, began = (
        next(event["time"] for event in events if event["event"] == kind and event["attempt"] == attempt)
        for kind, attempt in (("ended", 1), ("began", 2))
    )
    seconds = began - ended + told(done, "first")[-1]
    with capsys.disabled():
        print(f"\n{seconds:.2f} s from death to the first new step, without imports")
    assert seconds < 2


def cost(spent, which):
    plain, supervised = (median(one[which] for one in spent[name]) for name in ("plain", "supervised"))
    return supervised / plain - 1


def finished(arguments):
    return subprocess.run([*map(str, arguments)], capture_output=True, text=True, check=True, timeout=600)


def told(done, what):
    return [float(found) for found in re.findall(rf"^{what} ([\d.]+)", done.stderr, re.MULTILINE)]


def spread(values):
    """Return how far the median of so many values may be off, as a fraction: half the middle half."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return (ordered[-1 - quarter] - ordered[quarter]) / 2 / median(values)
