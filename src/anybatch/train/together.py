"""`fit` as one of several workers: its slice of the data, one writer, and one decision for all."""

import json
from collections import deque
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from anybatch.handover import Json, own_papers
from anybatch.stream import Stream
from anybatch.train.backends import shared_backend_of
from anybatch.train.checkpoint_arrays import StoredArrays, pieces_of
from anybatch.train.checkpoint_files import State
from anybatch.train.checkpoint_keeper import Keeper, Watching
from anybatch.train.checkpoint_places import seed_of, with_seed
from anybatch.train.company import Alone
from anybatch.train.inputs import Opener, Source, StreamSource
from anybatch.train.session import Session
from anybatch.train.shared import SharedSession
from anybatch.train.slices import slice_of
from anybatch.train.workers import CannotShare, OtherThanFirst, Workers

_RECEIVED = "received-"


def together(model: Any) -> Alone:
    """Join the other workers, if this process has not done so, and return their company."""
    adapter = shared_backend_of(model)
    workers = adapter.join()
    return Alone() if workers is None else Together(workers, adapter)


class Together(Alone):
    """One of several processes, each of which trains on its own rows of every batch."""

    def __init__(self, workers: Workers, adapter: Any) -> None:
        self._workers = workers
        self._adapter = adapter

    def source(self, source: Source) -> Source:
        """Return the rows of every batch that are this worker's."""
        if not isinstance(source, StreamSource):
            raise CannotShare(getattr(source, "kind", type(source).__name__), self._workers.size)
        return source.dealt(self._dealt)

    def _dealt(self, stream: Stream) -> tuple[Stream, Opener]:
        seed = told(self._workers, seed_of(stream))
        # arrays are shuffled by a seed that each worker may have drawn for itself
        stream = stream if seed is None else with_seed(stream, seed)
        return stream, slice_of(stream, self._workers.rank, self._workers.size).opened

    def keeper(self, model: Any, source: Source, folder: Any, *, resume: bool, epochs: int) -> Keeper:
        """Return who keeps the state: worker 0 reads and writes it, the others are told."""
        return SharedKeeper(self._workers, model, source, folder, resume=resume, epochs=epochs)

    def session(self, model: Any, wanted: int | None, source: Source) -> Session:
        """Return what batches go through; all workers have worker 0's weights then."""
        data: Any = source
        sample = data.first_rows(self._adapter.SAMPLE_ROWS)
        if sample is None:
            return Session(model, wanted)
        return SharedSession(model, wanted, self._workers, self._adapter, sample)

    def watchers(self, callbacks: Any, verbose: Any) -> tuple[Any, Any]:
        """Return the callbacks that this worker calls, and how much it prints: only worker 0 does either."""
        if self._workers.rank == 0:
            return callbacks, verbose
        return self._adapter.without_writers(callbacks), 0

    def agree(self, stop: bool) -> bool:
        """Return whether any worker wants to stop."""
        return bool(self._workers.all_sum([np.int64(stop)])[0] > 0)


class SharedKeeper(Keeper):
    """The state of a training of several workers: worker 0 has the folder, the others get what is in it."""

    def __init__(self, workers: Workers, *args: Any, **options: Any) -> None:
        self._workers = workers
        self._received: TemporaryDirectory[str] | None = None
        super().__init__(*args, **options)

    def _found(self, folder: Path, resume: bool) -> State | None:
        self._check_alike()
        state = super()._found(folder, resume) if self._workers.rank == 0 else None
        found = told(self._workers, None if state is None else {"step": state.step, "facts": state.facts})
        if found is None:
            return None
        if state is None:
            self._received = TemporaryDirectory(prefix=_RECEIVED, dir=_room_for_states())
            state = State(found["step"], found["facts"], _received(self._workers, Path(self._received.name)))
        else:
            _sent(self._workers, state)
        return state

    def _check_alike(self) -> None:
        """Refuse to train on other data than worker 0: batches of other lengths would never meet."""
        own = self._identity()
        # layers may be told which worker they are on, but weights have to be of one number
        own["model"] = own["model"].partition(" (")[0]
        for what, first in told(self._workers, own).items():
            if own[what] != first:
                raise OtherThanFirst(self._workers.rank, what, first, own[what])

    def watching(self, callbacks: Any, session: Session) -> "SharedWatching":
        """Return callbacks that keep the state besides."""
        return SharedWatching(self, callbacks, session, self._workers)

    def let_go_of_received(self) -> None:
        """Remove the copy of a state that was sent, once everything in it is in its place."""
        if self._received is not None:
            self._received.cleanup()

    def close(self) -> None:
        """Wait for what is being written, and let go of everything."""
        super().close()
        self.let_go_of_received()


def _room_for_states() -> Path | None:
    """Return where a state is kept that is as large as the model: a folder for temporary files may be memory.

    A process that was killed has left its own there.
    """
    papers = own_papers()
    if papers is not None:
        for left in papers.glob(f"{_RECEIVED}*"):
            rmtree(left, ignore_errors=True)
    return papers


class SharedWatching(Watching):
    """Callbacks that know where the last update was made, in case the next one cannot be."""

    def __init__(self, keeper: SharedKeeper, callbacks: Any, session: Session, workers: Workers) -> None:
        super().__init__(keeper, callbacks, session)
        self._keeper: SharedKeeper = keeper
        self._workers = workers
        self._done = keeper.batches_done
        self._updates = 0
        """How many this session had made when that many batches were done."""
        self._place: Json | None = None if keeper.state is None else keeper.state.facts["place"]

    def on_train_begin(self, logs: Any = None) -> None:
        super().on_train_begin(logs)
        if self._keeper.state is None and isinstance(self._session, SharedSession):
            # a callback of worker 0 may have brought back what an earlier training had come to
            self._session.give_first_values()
            self._model._initial_epoch = told(self._workers, self._model._initial_epoch)  # noqa: SLF001

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_begin(epoch, logs)
        self._keeper.let_go_of_received()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        self._done = batch + self._offset + 1
        self._updates = self._session.transaction.size.step
        if self._keeper.keeps:
            source: Any = self._keeper.source
            self._place = source.place()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        self._done = 0

    def _largest_part(self, batch_size: int) -> int:
        return min(super()._largest_part(batch_size), -(-batch_size // self._workers.size))

    def cut_off(self) -> None:
        """Write the state behind the last update: the batch that was begun will be begun again.

        Among several steps of one execution nobody knows the place of the last one: the state before counts.
        """
        before = self._keeper.state
        known = self._session.transaction.size.step == self._updates
        if known and self._keeper.keeps and (before is None or before.step != self._step):
            standing = self._done or self._keeper.counts_steps
            self._write(self._epoch, self._done, self._place if standing else None, {}, last=True)
        self._keeper.close()


def told(workers: Workers, value: Any) -> Any:
    """Return what worker 0 says, as JSON has it."""
    return json.loads(b"".join(workers.of_first(json.dumps(value).encode())))


def _sent(workers: Workers, state: State) -> None:
    for piece in pieces_of(state.arrays):
        deque(workers.of_first(piece), maxlen=0)
    deque(workers.of_first(b""), maxlen=0)


def _received(workers: Workers, folder: Path) -> StoredArrays:
    """Return the arrays that worker 0 sends: in a file, because they need not fit beside the model."""
    file = folder / "arrays.safetensors"
    with file.open("wb") as out:
        while sum(out.write(piece) for piece in workers.of_first(b"")):
            pass
    return StoredArrays(file)
