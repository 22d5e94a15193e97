"""Several workers as threads of one process that run in turns, and meet where workers would talk."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from anybatch.train.backends import tensorflow_shared
from anybatch.train.together import Together

_FITTING = sys.modules["anybatch.train.fit"]
"""The module: its function has taken its name."""

_SECONDS = 60


class Meeting:
    """Where they meet: all have to say the same kind of thing at the same time."""

    def __init__(self, size):
        self.size = size
        self.turn = threading.Lock()
        self.all_there = threading.Barrier(size, timeout=_SECONDS)
        self.said = {}

    def exchanged(self, rank, kind, tensors):
        self.said[rank] = kind, [np.asarray(tensor) for tensor in tensors]
        self.turn.release()
        try:
            self.all_there.wait()
            said = [self.said[other] for other in range(self.size)]
            self.all_there.wait()
        finally:
            self.turn.acquire()
        assert len({(kind, len(tensors)) for kind, tensors in said}) == 1, said
        return list(zip(*(tensors for _, tensors in said), strict=True))


class Worker:
    def __init__(self, rank, meeting):
        self.rank, self.size, self._meeting = rank, meeting.size, meeting

    def all_sum(self, tensors):
        given = self._meeting.exchanged(self.rank, "sum", tensors)
        assert all(len({(one.shape, one.dtype) for one in several}) == 1 for several in given), given
        return [np.sum(several, axis=0, dtype=several[0].dtype) for several in given]

    def all_rows(self, tensors):
        if not tensors:
            return []
        given = self._meeting.exchanged(self.rank, "rows", tensors)
        assert all(len({(one.shape[1:], one.dtype) for one in several}) == 1 for several in given), given
        return [np.concatenate(several) for several in given]

    def of_first(self, content):
        yield self._meeting.exchanged(self.rank, "first", [np.frombuffer(content, np.uint8)])[0][0].tobytes()

    def give_first_values(self, variables):
        given = self._meeting.exchanged(self.rank, "values", [variable.value for variable in variables])
        for variable, several in zip(variables, given, strict=True):
            variable.assign(several[0])


def together(size, train, monkeypatch):
    """Return what `train(rank)`, which calls `fit`, returns on each of so many workers."""
    meeting, own = Meeting(size), threading.local()
    monkeypatch.setattr(_FITTING, "company_of", lambda model: Together(own.worker, tensorflow_shared))

    def run(rank):
        own.worker = Worker(rank, meeting)
        with meeting.turn:
            try:
                return train(rank)
            except BaseException:
                meeting.all_there.abort()
                raise

    with ThreadPoolExecutor(size) as pool:
        return [one.result() for one in [pool.submit(run, rank) for rank in range(size)]]
