"""`anybatch bench`: how fast your own data can be read, beside tf.data."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated

import typer

from anybatch.cli.arguments import JsonOption
from anybatch.cli.failures import COULD_NOT, FINE, WRONG, complain, reported
from anybatch.cli.report import plural, print_json, say

COPIES = 16
"""Of the demo's pictures: reading them once is over before anybody is at full speed."""

EXAMPLE = "Example:  anybatch bench 'train/*.tfrecord' --batch-size 512"


@reported
def bench(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATHS…]",
            help="Shards or globs; without any, small pictures that are made for it.",
            show_default=False,
        ),
    ] = None,
    *,
    batch_size: Annotated[int, typer.Option(min=1, help="The batch you train with.")] = 512,
    records: Annotated[int, typer.Option(min=1, help="Read the first so many records.")] = 100_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each is timed; medians are shown.")] = 3,
    alone: Annotated[bool, typer.Option("--alone", help="Leave tf.data out.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Measure how fast these shards can be read here, beside tf.data if it is installed.

    In file order and shuffled, the first batch, peak memory, and going on in the middle of an epoch; each in
    a fresh process, in turns, and only if both read the same records. tf.data parses whole batches at a time
    and shuffles in a buffer of 10,000 records; anybatch shuffles everything.

    Exit code: 0 done, 1 the two did not read the same, 2 could not be done.
    """
    with _files(paths) as files:
        return _measured(files, batch_size, records, rounds, alone=alone, as_json=as_json)


@contextmanager
def _files(paths: list[str] | None) -> Iterator[list[str]]:
    """Give the shards that were named, or some that are gone afterwards."""
    from anybatch.records import find_files

    if paths:
        yield find_files(paths)
        return
    from anybatch.cli.demo.data import write_sorted_digits

    with TemporaryDirectory(prefix="anybatch-bench-") as folder:
        write_sorted_digits(Path(folder))
        for number, shard in product(range(1, COPIES), list(Path(folder).glob("*.tfrecord"))):
            copyfile(shard, shard.with_stem(f"{shard.stem}-{number}"))
        yield find_files([f"{folder}/*.tfrecord"])


def _measured(
    files: list[str], batch_size: int, records: int, rounds: int, *, alone: bool, as_json: bool
) -> int:
    from anybatch.cli.bench.figures import compared
    from anybatch.cli.bench.job import Contender
    from anybatch.cli.bench.rounds import played
    from anybatch.cli.bench.show import document, show

    there, index_seconds = _indexed(files)
    records = min(records, there)
    missing = "" if alone else _why_no_tf_data()
    contenders = [Contender.OURS] if alone or missing else list(Contender)
    tell = _nobody if as_json or not sys.stderr.isatty() else complain
    found = compared(
        played(contenders, files, batch_size=batch_size, records=records, rounds=rounds, tell=tell)
    )
    if as_json:
        about = {"records": records, "batch_size": batch_size, "rounds": rounds}
        print_json({**about, "index_seconds": index_seconds, **document(found)})
    else:
        say(f"{plural(records, 'record')}, batch {batch_size:,}, the medians of {plural(rounds, 'round')}")
        say(f"the indexes, needed once: {index_seconds:.3g} s")
        show(found)
        say(missing)
    if found.failed(Contender.OURS):
        return COULD_NOT
    return WRONG if found.unequal else FINE


def _indexed(files: list[str]) -> tuple[int, float]:
    """Return how many records there are, and how long it took to know."""
    from anybatch.errors import NothingToRead
    from anybatch.records import index_shards

    begun = perf_counter()
    overview = index_shards(files)
    for shard in overview.failed:
        raise ValueError(f"`{shard.file}`: {shard.problem}")
    if not overview.records:
        raise NothingToRead(files)
    return overview.records, perf_counter() - begun


def _why_no_tf_data() -> str:
    if find_spec("tensorflow") is not None:
        return ""
    return "tf.data is not installed; `pip install 'anybatch[tensorflow]'` puts it beside these figures"


def _nobody(_: str) -> None:
    """Where nobody looks, nothing is told."""
