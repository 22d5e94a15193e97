"""A thread that writes states one after the other, the newest one only."""

import threading
from collections.abc import Callable

from anybatch.train.checkpoint_files import State


class Writer:
    """Writes what it is handed; what fails is remembered until somebody asks."""

    def __init__(self, write: Callable[[State], None]) -> None:
        self._write = write
        self._changed = threading.Condition()
        self._waiting: State | None = None
        self._writing = False
        self._problem: Exception | None = None
        self._thread: threading.Thread | None = None

    @property
    def busy(self) -> bool:
        """Whether something is being written or waits for it."""
        return self._writing or self._waiting is not None

    def hand_over(self, state: State) -> None:
        """Let a state be written; one that is still waiting is forgotten."""
        with self._changed:
            if not self._writing:
                # no daemon: Python's end waits for a state that is nearly on the disk. It ends when there is
                # nothing more to write, or Python's end would wait for that as well
                self._thread = threading.Thread(target=self._run, name="anybatch-checkpoint")
                self._thread.start()
            self._writing, self._waiting = True, state

    def finish(self) -> None:
        """Wait until nothing is left to write."""
        with self._changed:
            self._changed.wait_for(lambda: not self.busy)

    def close(self) -> None:
        """Finish, and let the thread end."""
        self.finish()
        if self._thread is not None:
            self._thread.join()

    def take_problem(self) -> Exception | None:
        """Return what went wrong since the last time, once."""
        with self._changed:
            problem, self._problem = self._problem, None
        return problem

    def _run(self) -> None:
        while (state := self._next()) is not None:
            problem = self._tried(state)
            # the arrays are let go before anybody hears that they are written
            state = None
            with self._changed:
                # a success says nothing of the failure before it
                self._problem = problem or self._problem

    def _next(self) -> State | None:
        with self._changed:
            state, self._waiting = self._waiting, None
            if state is None:
                self._writing = False
                self._changed.notify_all()
        return state

    def _tried(self, state: State) -> Exception | None:
        try:
            self._write(state)
        except Exception as error:  # noqa: BLE001 - whoever waits for this thread must not wait for ever
            return error
        return None
