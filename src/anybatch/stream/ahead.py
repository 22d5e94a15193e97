"""Work ahead of the consumer, in order and within bounds."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait

from anybatch.errors import DoesNotFit
from anybatch.records import give_way, work_until
from anybatch.stream.chunk import Chunk, close
from anybatch.stream.meters import Meter


def in_order(
    change: Callable[[Chunk], Chunk], chunks: Iterator[Chunk], threads: int, meter: Meter
) -> Iterator[Chunk]:
    """Yield `change(chunk)` for every chunk, a few computed ahead on threads, as many as the bound allows."""
    stop = threading.Event()
    pool = ThreadPoolExecutor(
        threads, thread_name_prefix="anybatch-map", initializer=work_until, initargs=(stop,)
    )
    under_way = _UnderWay(meter)
    try:
        for chunk in chunks:
            while under_way and not under_way.has_room_for(chunk, threads):
                yield under_way.first()
            under_way.add(chunk, pool.submit(change, chunk))
        while under_way:
            yield under_way.first()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
        # an exception on its way to the user holds this frame, and with it what reads ahead
        close(chunks)


class _UnderWay:
    """Chunks that threads work on.

    What comes out is taken to be as large as the largest so far; until the first result shows that,
    nothing else is begun.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._futures: deque[tuple[int, int, Future[Chunk]]] = deque()
        self._growth = 1.0
        self._growth_known = False

    def __len__(self) -> int:
        return len(self._futures)

    def has_room_for(self, chunk: Chunk, threads: int) -> bool:
        needed = self._meter.held_bytes + self._with_result(chunk.nbytes)
        return self._growth_known and len(self) <= threads and needed <= self._meter.bound_bytes

    def add(self, chunk: Chunk, future: Future[Chunk]) -> None:
        n_bytes = self._with_result(chunk.nbytes)
        self._meter.hold(n_bytes)
        # both sizes: how they relate changes while the chunk is under way
        self._futures.append((chunk.nbytes, n_bytes, future))

    def first(self) -> Chunk:
        given_bytes, n_bytes, future = self._futures.popleft()
        try:
            with self._meter.waiting():
                made = _result(future)
        finally:
            self._meter.hold(-n_bytes)
        self._growth = max(self._growth, made.nbytes / max(1, given_bytes))
        self._growth_known = True
        if made.nbytes > self._meter.bound_bytes:
            raise DoesNotFit(self._meter.stage, made.nbytes + given_bytes, self._meter.bound_bytes)
        self._meter.elements += made.rows
        return made

    def _with_result(self, n_bytes: int) -> int:
        return int(n_bytes * (1 + self._growth))


def _result(future: Future[Chunk]) -> Chunk:
    """Return what a future gives, unless whoever waits for it is waited for no longer."""
    while not future.done():
        give_way()
        wait([future], timeout=0.1)
    return future.result()


def prefetched(chunks: Iterator[Chunk], depth: int, meter: Meter) -> Iterator[Chunk]:
    """Yield the chunks while a thread makes up to `depth` more of them ready, as far as the bound allows."""
    ready = _Ready(depth, meter)
    thread = threading.Thread(target=_fill, args=(ready, chunks), name="anybatch-prefetch", daemon=True)
    thread.start()
    try:
        while (chunk := ready.get()) is not None:
            yield chunk
    finally:
        ready.stop()
        thread.join()


class _Ready:
    """A queue that is full by count or by bytes, whichever comes first; one chunk always has room."""

    def __init__(self, depth: int, meter: Meter) -> None:
        self._depth = depth
        self._meter = meter
        self._chunks: deque[Chunk] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self.stopped = threading.Event()
        self._failure: BaseException | None = None

    def put(self, chunk: Chunk) -> bool:
        """Add a chunk when there is room; False if nobody wants it any more."""
        with self._changed:
            self._changed.wait_for(lambda: self.stopped.is_set() or self._has_room_for(chunk))
            if not self.stopped.is_set():
                self._meter.hold(chunk.nbytes)
                self._chunks.append(chunk)
                self._changed.notify_all()
            return not self.stopped.is_set()

    def end(self, failure: BaseException | None) -> None:
        """Nothing comes any more, or a failure does."""
        with self._changed:
            self._ended, self._failure = True, failure
            self._changed.notify_all()

    def get(self) -> Chunk | None:
        """Return the next chunk, or None behind the last one."""
        with self._meter.waiting(), self._changed:
            # in short waits, so that Ctrl-C gets through
            while not self._chunks and not self._ended:
                self._changed.wait(0.1)
            if not self._chunks:
                if self._failure is not None:
                    raise self._failure
                return None
            chunk = self._chunks.popleft()
            self._meter.hold(-chunk.nbytes)
            self._meter.elements += chunk.rows
            self._changed.notify_all()
            return chunk

    def stop(self) -> None:
        """Let whoever fills this end."""
        with self._changed:
            self.stopped.set()
            self._chunks.clear()
            self._changed.notify_all()

    def _has_room_for(self, chunk: Chunk) -> bool:
        held = self._meter.held_bytes + chunk.nbytes
        return not self._chunks or (len(self._chunks) < self._depth and held <= self._meter.bound_bytes)


def _fill(ready: _Ready, chunks: Iterator[Chunk]) -> None:
    failure: BaseException | None = None
    work_until(ready.stopped)
    try:
        try:
            for chunk in chunks:
                if not ready.put(chunk):
                    break
        except BaseException as error:  # noqa: BLE001 - it is raised again where the consumer is
            failure = error
        finally:
            close(chunks)
    finally:
        # even if closing failed: the consumer would wait for ever
        ready.end(failure)
