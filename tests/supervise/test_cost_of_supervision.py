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
    seconds, shares = {name: [] for name in commands}, []
    for number in range(ROUNDS):
        # whoever comes first meets a machine in another state: they take turns
        for name in sorted(commands, reverse=bool(number % 2)):
            done = finished(commands[name])
            seconds[name].append(told(done, "seconds")[0])
            if name == "supervised":
                shares.append(told(done, "cost")[0] / seconds[name][-1])
    difference = median(seconds["supervised"]) / median(seconds["plain"]) - 1
    with capsys.disabled():
        print(f"\n{median(shares):.2%} of the time, {max(shares):.2%} at most, by all that it does")
        print(f"{difference:+.2%} beside the plain script, medians of {ROUNDS}: {seconds}")
    assert max(shares) < ALLOWED
    # the clock of a machine that others use as well cannot tell a per cent: how far it is off is measured
    assert difference < ALLOWED + spread(seconds["plain"]) + spread(seconds["supervised"])


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


def finished(arguments):
    return subprocess.run([*map(str, arguments)], capture_output=True, text=True, check=True, timeout=600)


def told(done, what):
    return [float(found) for found in re.findall(rf"^{what} ([\d.]+)", done.stderr, re.MULTILINE)]


def spread(values):
    """Return how far the median of so many values may be off, as a fraction: half the middle half."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return (ordered[-1 - quarter] - ordered[quarter]) / 2 / median(values)
