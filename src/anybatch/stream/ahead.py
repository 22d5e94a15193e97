"""Work ahead of the consumer, in order and within bounds."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from anybatch.stream.chunk import Chunk
from anybatch.stream.run import Run


def in_order(change: Callable[[Chunk], Chunk], chunks: Iterator[Chunk], run: Run) -> Iterator[Chunk]:
    """Yield `change(chunk)` for every chunk, a few of them computed ahead on threads."""
    if run.threads < 2:
        yield from map(change, chunks)
        return
    pool = ThreadPoolExecutor(run.threads, thread_name_prefix="anybatch-map")
    under_way: deque[Future[Chunk]] = deque()
    try:
        for chunk in chunks:
            under_way.append(pool.submit(change, chunk))
            if len(under_way) > run.threads:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_END = object()


def prefetched(chunks: Iterator[Chunk], depth: int) -> Iterator[Chunk]:
    """Yield the chunks while a thread makes up to `depth` more of them ready."""
    ready: queue.Queue[object] = queue.Queue(max(1, depth))
    stop = threading.Event()
    thread = threading.Thread(target=_fill, args=(ready, chunks, stop), name="anybatch-prefetch", daemon=True)
    thread.start()
    try:
        while isinstance(one := ready.get(), Chunk):
            yield one
        if isinstance(one, BaseException):
            raise one
    finally:
        stop.set()
        while thread.is_alive():
            _drain(ready)
            thread.join(0.05)


def _fill(ready: "queue.Queue[object]", chunks: Iterator[Chunk], stop: threading.Event) -> None:
    last: object = _END
    try:
        for chunk in chunks:
            if not _put(ready, chunk, stop):
                return
    except BaseException as error:  # noqa: BLE001 - it is raised again where the consumer is
        last = error
    finally:
        _close(chunks)
    _put(ready, last, stop)


def _put(ready: "queue.Queue[object]", one: object, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            ready.put(one, timeout=0.05)
        except queue.Full:
            continue
        return True
    return False


def _close(chunks: Iterator[Chunk]) -> None:
    close = getattr(chunks, "close", None)
    if close is not None:
        close()


def _drain(ready: "queue.Queue[object]") -> None:
    while not ready.empty():
        ready.get_nowait()
