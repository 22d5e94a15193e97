"""`anybatch index`: make the sidecars that say where the records are."""

from typing import TYPE_CHECKING, Annotated

import typer

from anybatch.cli.arguments import AddressOption, EngineOption, JsonOption, PathsArgument
from anybatch.cli.engines import named_engine
from anybatch.cli.failures import reported
from anybatch.cli.overview import exit_code, overview_document, show_failed, show_ledger
from anybatch.cli.progress import bytes_of, progress_bar
from anybatch.cli.report import plural, print_json, print_table, say

if TYPE_CHECKING:
    from anybatch.records import Overview

EXAMPLE = "Example:  anybatch index 'train/*.tfrecord'"


@reported
def index(
    paths: PathsArgument,
    force: Annotated[bool, typer.Option("--force", help="Make every index anew.")] = False,
    engine: EngineOption = None,
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> int:
    """Find out where the records of each shard are, and keep that in a sidecar.

    A shard whose sidecar is there and fresh is not read again. The sidecar is a dot-file beside the
    shard, or lies in your cache folder where that cannot be written.

    Exit code: 0 fine, 1 something is damaged, 2 a file could not be indexed.
    """
    from anybatch import records, scale

    files = records.find_files(paths)
    bar = progress_bar("indexing", bytes_of(files), shown=not as_json)
    with named_engine(engine, address) as workers, bar as progress:
        if workers is None:
            overview = records.index_shards(files, force=force, progress=progress)
        else:
            overview = scale.index_shards(files, engine=workers, force=force, progress=progress)
    show_failed(overview)
    if as_json:
        print_json(overview_document(overview))
    else:
        _show(overview)
    return exit_code(overview)


def _show(overview: "Overview") -> None:
    from anybatch.units import size

    good = [shard for shard in overview.shards if not shard.problem]
    made = sum(not shard.from_sidecar for shard in good)
    say(
        f"{plural(len(good), 'shard')}, {plural(overview.records, 'record')}, {size(overview.file_bytes)}: "
        f"{plural(made, 'index', 'indexes')} made, {len(good) - made:,} fresh already"
    )
    rows = [
        (
            shard.file,
            shard.records,
            size(shard.file_bytes),
            "made" if not shard.from_sidecar else "fresh",
            shard.sidecar or "nowhere: no folder for it can be written",
            len(shard.damaged),
        )
        for shard in good
    ]
    if rows:
        say()
        print_table("", ("file", "records", "size", "index", "where it lies", "damaged"), rows)
    show_ledger(overview.damaged)
