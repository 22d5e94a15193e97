"""Keras' own `fit` on several workers, for comparison."""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from anybatch.scale.workers_places import LocalPlaces
from tests.scale.launched import QUIET

SCRIPT = Path(__file__).with_name("keras_under_strategy.py")


def started(addresses, rank):
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
    return subprocess.Popen(
        [sys.executable, "-u", SCRIPT],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | QUIET | {"TF_CONFIG": json.dumps(config)},
    )


def test_keras_fit_fails_under_the_strategy_of_several_workers():
    """If this one fails, Keras has learnt it, and the documentation is to be changed."""
    addresses = LocalPlaces().addresses(2)
    with ExitStack() as ending:
        workers = [started(addresses, rank) for rank in range(2)]
        for worker in workers:
            # a worker whose `fit` has failed still waits for the other one
            ending.callback(worker.kill)
        told = next((line for line in workers[0].stderr if line.startswith("ValueError")), "")
    assert "Attempt to convert a value (PerReplica" in told
