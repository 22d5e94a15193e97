"""The state of training on disk: always a whole one, written while training goes on.

A state is two files: `state-000007.safetensors` holds arrays by name, `state-000007.json` everything else and
the arrays' checksum. A state exists once its JSON does; a damaged one is passed over for the one before.
"""

import errno
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from anybatch.errors import AnybatchError, AnybatchWarning
from anybatch.handover import DISK, Disk, Occupied, alone_in
from anybatch.train.checkpoint_cadence import Cadence
from anybatch.train.checkpoint_files import State, newest_whole, remove_older, tidy, write_state
from anybatch.train.checkpoint_writer import Writer

Identity = Mapping[str, str]
"""What must be the same for training to be continued: name of the thing → what it is now."""

KEPT_STATES = 3


class ChangedSince(AnybatchError, ValueError):
    """Saved training cannot be continued, because something it depends on is not the same any more."""

    def __init__(self, folder: str, what: str, before: str, now: str) -> None:
        super().__init__(folder, what, before, now)
        self.folder = folder
        self.what = what
        self.before = before
        self.now = now

    def __str__(self) -> str:
        return (
            f"the {self.what} changed since `{self.folder}` was written: "
            f"it was {self.before} and is {self.now}; "
            "change it back, name another folder, or start anew with resume=False"
        )


class FolderInUse(AnybatchError, RuntimeError):
    """Another process trains with the same folder."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.folder = folder

    def __str__(self) -> str:
        return f"another process keeps its state in `{self.folder}`; wait for it, or name another folder"


class Checkpoint:
    """A folder of states that belongs to one training at a time."""

    def __init__(self, folder: Path, identity: Identity, disk: Disk, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._identity = dict(identity)
        self._disk = disk
        self._held = ExitStack()
        self.cadence = Cadence(clock)
        self._writer = Writer(self._write)

    @classmethod
    def open(
        cls,
        folder: str | Path,
        identity: Identity,
        *,
        resume: bool = True,
        disk: Disk = DISK,
        clock: Callable[[], float] = time.monotonic,
    ) -> "Checkpoint":
        """Take a folder, made if need be. `resume=False` removes the states in it."""
        opened = cls(Path(folder), identity, disk, clock)
        try:
            opened._folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            text = "a file is there, and checkpoint= names a folder"
            raise NotADirectoryError(errno.ENOTDIR, text, str(folder)) from None
        try:
            opened._held.enter_context(alone_in(opened._folder))
        except Occupied:
            raise FolderInUse(str(folder)) from None
        tidy(opened._folder)
        if not resume:
            remove_older(opened._folder, kept=0, disk=disk)
        return opened

    def latest(self) -> State | None:
        """Return the newest whole state; None if there is none, `ChangedSince` if it is not of this training.

        Reads every byte of it once, to check it.
        """
        state = newest_whole(self._folder)
        if state is not None:
            self._check(state.identity)
        return state

    def _check(self, before: Identity) -> None:
        for what in [*self._identity, *(name for name in before if name not in self._identity)]:
            was, now = before.get(what, "absent"), self._identity.get(what, "absent")
            if was != now:
                raise ChangedSince(str(self._folder), what, was, now)

    def due(self) -> bool:
        """Whether it is time for the next state. One look at the clock: cheap enough for every update."""
        return not self._writer.busy and self.cadence.due()

    def save_later(self, state: State) -> None:
        """Hand over a state, whose arrays nobody changes any more, and return at once.

        A state that is still waiting to be written is replaced by the new one.
        """
        self._complain()
        self.cadence.began()
        self._writer.hand_over(state)

    def save_now(self, state: State) -> None:
        """Write a state and wait until it is on the disk: for the last one, and where a copy has no room."""
        self.cadence.began()
        self._writer.finish()
        self._writer.hand_over(state)
        self._writer.finish()
        self._complain()

    def close(self) -> None:
        """Wait for what is being written, and let the folder go."""
        self._writer.close()
        self._held.close()
        self._complain()

    def _write(self, state: State) -> None:
        try:
            write_state(self._folder, self._identity, state, disk=self._disk)
            remove_older(self._folder, kept=KEPT_STATES, disk=self._disk)
        finally:
            # a full disk is not tried again behind every update
            self.cadence.ended()

    def _complain(self) -> None:
        problem = self._writer.take_problem()
        if isinstance(problem, OSError):
            self._warn(problem)
        elif problem is not None:
            raise problem

    def could_not_write(self, problem: OSError) -> None:
        """Say that a state could not even be put together; the next one is tried in its time."""
        self.cadence.ended()
        self._warn(problem)

    def _warn(self, problem: OSError) -> None:
        # training is worth more than the state of one moment
        text = f"the state of training could not be written to `{self._folder}`: {problem}"
        warnings.warn(f"{text}; the one before is kept", AnybatchWarning, stacklevel=4)
