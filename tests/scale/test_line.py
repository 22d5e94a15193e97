"""The line that other tests train across is as slow as it says, and really loses packets."""

import hashlib
import random
import subprocess
import sys

import pytest

from tests.scale.launched import in_namespace
from tests.scale.line import CUT, Conditions, address

PORT = 23000
N_BYTES = 3 << 20
TRIES = 3
RECEIVE = f"""
import hashlib, socket
with socket.create_server(("", {PORT})) as server:
    print("listening", flush=True)
    stream, _ = server.accept()
    with stream.makefile("rb") as file:
        print(hashlib.sha256(file.read()).hexdigest())
"""
SEND = f"""
import random, socket
with socket.create_connection(("{address(1)}", {PORT})) as stream:
    stream.sendall(random.Random(1).randbytes({N_BYTES}))
"""
REFUSED = f"""
import socket, time
for _ in range({TRIES}):
    began = time.perf_counter()
    try:
        socket.create_connection(("{address(1)}", {PORT}), timeout=1)
    except OSError as answer:
        print(time.perf_counter() - began, type(answer).__name__)
"""
"""Nobody listens: the other host's refusal takes one round trip."""


def said_by(host, program):
    command = [*in_namespace(host), sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def round_trips(line):
    """Return seconds for each answer of the other host."""
    told = [answer.split() for answer in said_by(line.hosts[0], REFUSED).splitlines()]
    return [float(seconds) for seconds, answer in told if answer == "ConnectionRefusedError"]


@pytest.mark.parametrize(("delay", "jitter"), [(0.0, 0.0), (0.05, 0.02)])
def test_an_answer_takes_the_delay_of_both_ways(line, delay, jitter):
    line.becomes(Conditions(delay, jitter))
    found = round_trips(line)
    assert len(found) == TRIES
    assert min(found) >= 2 * (delay - jitter)
    assert min(found) < 2 * (delay + jitter) + 0.1
    assert line.dropped == 0


def test_a_stream_comes_whole_over_a_line_that_loses_packets(line):
    line.becomes(Conditions(delay_seconds=0.002, jitter_seconds=0.001, loss=0.02))
    receiver = subprocess.Popen(
        [*in_namespace(line.hosts[1]), sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE, text=True
    )
    try:
        assert receiver.stdout.readline() == "listening\n"
        said_by(line.hosts[0], SEND)
        told, _ = receiver.communicate(timeout=60)
    finally:
        receiver.kill()
    assert told.strip() == hashlib.sha256(random.Random(1).randbytes(N_BYTES)).hexdigest()
    assert line.dropped > 10
    assert line.ways[0].passed * 1500 > N_BYTES


def test_nothing_comes_over_a_line_that_is_cut_until_it_is_mended(line):
    line.ways[1].conditions = CUT
    assert round_trips(line) == []
    assert line.ways[0].dropped == 0
    assert line.ways[1].dropped >= TRIES
    line.becomes(Conditions())
    assert len(round_trips(line)) == TRIES
