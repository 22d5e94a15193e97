"""Tasks on threads of this process: the work is native and lets other threads run."""

import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from anybatch.records import usable_cores, work_until
from anybatch.scale.engine import Given, Made, Task, as_finished


class LocalEngine:
    """As many tasks at a time as there are cores, or as many as one wishes."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or usable_cores()

    def run(
        self, work: Callable[[Given], Made], tasks: Iterable[Task[Given]]
    ) -> Generator[tuple[Task[Given], Made], None, None]:
        stop = threading.Event()
        pool = ThreadPoolExecutor(self._threads, "anybatch", work_until, (stop,))
        under_way: dict[Future[Made], Task[Given]] = {}
        try:
            for task, future in as_finished(
                tasks,
                under_way,
                room=lambda: self._threads,
                start=lambda task: pool.submit(work, task.given),
                finished=_finished,
            ):
                yield task, future.result()
        finally:
            # after Ctrl-C or an error: what is under way ends at its next slice
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def _finished(futures: list[Future[Made]]) -> Iterable[Future[Made]]:
    return wait(futures, return_when=FIRST_COMPLETED).done
