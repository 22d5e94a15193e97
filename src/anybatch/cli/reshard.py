"""`anybatch reshard`: the same records in another number of shards, shuffled if asked for."""

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from anybatch.cli.arguments import AddressOption, EngineOption, JsonOption, PathsArgument, ToOption
from anybatch.cli.engines import named_engine
from anybatch.cli.failures import FINE, reported
from anybatch.cli.overview import damage_document, show_ledger
from anybatch.cli.progress import bytes_of, progress_bar
from anybatch.cli.report import plural, print_json, say

if TYPE_CHECKING:
    from anybatch.records import Resharded

EXAMPLE = "Example:  anybatch reshard 'train/*.tfrecord' --to shuffled --shards 64 --shuffle --seed 7"


class Packing(StrEnum):
    """How new shards can be compressed."""

    GZIP = "GZIP"
    ZLIB = "ZLIB"


class OnCorrupt(StrEnum):
    """What to do about damaged records."""

    RAISE = "raise"
    SKIP = "skip"


@reported
def reshard(
    paths: PathsArgument,
    to: ToOption,
    *,
    shards: Annotated[int, typer.Option("--shards", min=1, help="How many new shards.")],
    shuffle: Annotated[bool, typer.Option("--shuffle", help="Mix all records, exactly.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**64 - 1, help="Another seed, another order.")] = 0,
    compression: Annotated[
        Packing | None,
        typer.Option(case_sensitive=False, help="Compress the new shards.", show_default=False),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What the new shards are called.", show_default="as the old ones")
    ] = None,
    on_corrupt: Annotated[
        OnCorrupt, typer.Option("--on-corrupt", help="What to do about damaged records.")
    ] = OnCorrupt.RAISE,
    engine: EngineOption = None,
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> int:
    """Write all records into new shards whose lengths differ by one at most.

    Memory stays small however many records there are. After an error or Ctrl-C no new file is there.
    To be shuffled, compressed shards are unpacked into DIR for a while. With --engine what is finished is
    kept in DIR under a hidden name until all is done, and the same command goes on from there.

    Exit code: 0 done, 2 could not be done.
    """
    from anybatch import records, scale

    bar = progress_bar("resharding", _bytes_to_pass(paths, shuffle=shuffle), shown=not as_json)
    with named_engine(engine, address) as workers, bar as progress:
        deal = records.reshard if workers is None else partial(scale.reshard, engine=workers)
        made = deal(
            paths,
            to,
            shards,
            shuffle=shuffle,
            seed=seed,
            compression=compression,
            name=name,
            on_corrupt=on_corrupt,
            progress=progress,
        )
    if as_json:
        print_json(_document(made))
    else:
        _show(made, to)
    return FINE


def _bytes_to_pass(paths: list[str], *, shuffle: bool) -> int:
    """Return how much progress there will be: indexing, unpacking what is compressed, dealing."""
    from anybatch.records import find_shards

    shards = find_shards(paths)
    unpacked = [shard.path for shard in shards if shuffle and shard.compression]
    return 2 * bytes_of(shard.path for shard in shards) + bytes_of(unpacked)


def _document(made: "Resharded") -> dict[str, object]:
    files = zip(made.files, made.records, strict=True)
    return {
        "records": sum(made.records),
        "data_bytes": made.data_bytes,
        "shards": [{"file": file, "records": records} for file, records in files],
        "damaged": [damage_document(damage) for damage in made.damaged],
    }


def _show(made: "Resharded", to: str) -> None:
    fewest, most = min(made.records), max(made.records)
    each = f"{most:,} each" if fewest == most else f"{fewest:,} or {most:,} each"
    say(f"{plural(sum(made.records), 'record')} in {plural(len(made.files), 'shard')} in {to}, {each}")
    if made.damaged:
        say("what is damaged was left out")
    show_ledger(made.damaged)
