"""Scripts that run under `anybatch run`, in processes of their own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from anybatch.supervise.own_group import OwnGroup, own_group

MB = 1 << 20
PRELUDE = """
import ctypes, os, resource, signal, subprocess, sys, time
from anybatch.handover import Heartbeat, Pulse, received_orders

orders = received_orders()
heart = Heartbeat.of_this_process()

def train(step=1, part=64, **more):
    # what `ab.fit` says of itself
    part = min(part, orders.largest_part or part)
    heart.beat(Pulse(step=step, batch_size=64, part=part, **more), now=True)
    return part

def first_time():
    return orders.attempt == 1

def hold(megabytes):
    return bytearray(b"x") * (megabytes << 20)

"""
WITHOUT_GROUP = """
import sys
import anybatch.supervise.attempt as attempt
attempt.own_group = lambda limit_bytes: "not allowed in this test"
import anybatch.supervise.__main__ as process
process.os.execv = lambda program, arguments: sys.exit(process.main(arguments[-1]))
from anybatch.cli import main
main()
"""


def group_problem():
    """Return why no memory group can be made here, or None."""
    made = own_group(64 * MB)
    if isinstance(made, OwnGroup):
        made.remove()
        return None
    return made


NO_GROUP = group_problem()
needs_group = pytest.mark.skipif(NO_GROUP is not None, reason=f"no memory group can be made: {NO_GROUP}")


@dataclass(frozen=True)
class Told:
    """What came out of one supervised run."""

    code: int
    events: list
    err: str

    def ends(self):
        return [event for event in self.events if event["event"] == "ended"]

    def causes(self):
        return [event["cause"] for event in self.ends()]

    def parts(self):
        return [event["largest_part"] for event in self.events if event["event"] == "began"]


def command(*options, group=True):
    start = [sys.executable, "-m", "anybatch"] if group else [sys.executable, "-c", WITHOUT_GROUP]
    return [*start, "run", "--json", *map(str, options)]


def write_script(folder, body):
    script = Path(folder) / "script.py"
    script.write_text(PRELUDE + body)
    return script


def supervised(folder, body, *options, group=True, arguments=(), first=None):
    """Run a script to the end and return what was told; `first` is called in the supervisor's process."""
    script = write_script(folder, body)
    done = subprocess.run(
        [*command(*options, group=group), str(script), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONFAULTHANDLER": ""},
        preexec_fn=first,
    )
    return Told(done.returncode, events_of(done.stdout), done.stderr)


def events_of(text):
    return [json.loads(line) for line in text.splitlines()]
