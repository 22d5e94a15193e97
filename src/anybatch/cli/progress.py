"""A progress bar for people on a terminal."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def progress_bar(what: str, total_bytes: int, *, shown: bool) -> Iterator[Callable[[int], None] | None]:
    """Give a function to be told how many more bytes are done, or None where nobody would see the bar."""
    if not shown or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.progress import TransferSpeedColumn as Speed

    columns = (
        TextColumn(what),
        BarColumn(),
        DownloadColumn(binary_units=True),
        Speed(),
        TimeRemainingColumn(),
    )
    # it vanishes when the work is done: what stays is the report
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total_bytes)
        yield lambda more: bar.advance(task, more)


def bytes_of(files: Iterable[str]) -> int:
    """Return the size of all files that are there."""
    total = 0
    for file in files:
        with suppress(OSError):
            total += Path(file).stat().st_size
    return total
