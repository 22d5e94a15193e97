"""`anybatch verify`: check every checksum."""

from typing import TYPE_CHECKING, Annotated

import typer

from anybatch.cli.arguments import AddressOption, EngineOption, JsonOption, PathsArgument
from anybatch.cli.engines import named_engine
from anybatch.cli.failures import reported
from anybatch.cli.overview import exit_code, overview_document, show_failed, show_ledger
from anybatch.cli.progress import bytes_of, progress_bar
from anybatch.cli.report import plural, print_json, say

if TYPE_CHECKING:
    from anybatch.records import Overview

EXAMPLE = "Example:  anybatch verify 'train/*.tfrecord'"


@reported
def verify(
    paths: PathsArgument,
    trust_index: Annotated[
        bool,
        typer.Option("--trust-index", help="Skip shards that were verified before and have not changed."),
    ] = False,
    engine: EngineOption = None,
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> int:
    """Read every record of every shard and check its checksums.

    What was found is remembered in the sidecars. A file that cannot be read, or holds no TFRecords, is
    reported and the others are checked all the same.

    Exit code: 0 everything is sound, 1 something is damaged or no TFRecord, 2 a file could not be read.
    """
    from anybatch import records, scale

    files = records.find_files(paths)
    bar = progress_bar("checking", bytes_of(files), shown=not as_json)
    with named_engine(engine, address) as workers, bar as progress:
        if workers is None:
            overview = records.verify(files, trust_index=trust_index, progress=progress)
        else:
            overview = scale.verify(files, engine=workers, trust_index=trust_index, progress=progress)
    show_failed(overview)
    if as_json:
        print_json(overview_document(overview))
    else:
        _show(overview)
    return exit_code(overview, finds_strangers=True)


def _show(overview: "Overview") -> None:
    from anybatch.units import size

    good = [shard for shard in overview.shards if not shard.problem]
    trusted = sum(shard.from_sidecar for shard in good)
    records = plural(overview.records, "good record")
    checked = f"{plural(len(good), 'shard')}, {records}, {size(overview.file_bytes)}"
    damaged = sum(bool(shard.damaged) for shard in good)
    verdict = f"{damaged:,} of {len(good):,} shards damaged" if damaged else "every checksum is right"
    say(f"{checked}: {verdict if good else 'nothing could be checked'}")
    if trusted:
        say(f"{plural(trusted, 'shard')} not read again: verified before and unchanged since")
    show_ledger(overview.damaged)
    if damaged:
        say()
        say("`anybatch repair PATHS --to DIR` writes copies without what is damaged")
