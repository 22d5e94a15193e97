"""`anybatch repair`: copies without what is damaged."""

from typing import TYPE_CHECKING, Annotated

import typer

from anybatch.cli.arguments import AddressOption, EngineOption, JsonOption, PathsArgument, ToOption
from anybatch.cli.engines import named_engine
from anybatch.cli.failures import FINE, reported
from anybatch.cli.overview import damage_document, show_ledger
from anybatch.cli.progress import bytes_of, progress_bar
from anybatch.cli.report import plural, print_json, say

if TYPE_CHECKING:
    from anybatch.records import Repaired

EXAMPLE = "Example:  anybatch repair 'train/*.tfrecord' --to clean"

# each byte is examined, copied, and examined again
_PASSES = 3


@reported
def repair(
    paths: PathsArgument,
    to: ToOption,
    *,
    only_damaged: Annotated[
        bool, typer.Option("--only-damaged", help="Leave undamaged shards where they are.")
    ] = False,
    engine: EngineOption = None,
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> int:
    """Copy every good record to shards of the same names in another folder.

    The damaged bytes go to NAME.damaged there, and where they lay to NAME.damaged.json. The copies are
    verified before they get their names; after an error or Ctrl-C none of them is there. With --engine what
    is finished by then is kept in DIR under a hidden name, and the same command goes on from there.

    Exit code: 0 the copies are sound, 2 they could not be made.
    """
    from anybatch import records, scale

    files = records.find_files(paths)
    bar = progress_bar("repairing", _PASSES * bytes_of(files), shown=not as_json)
    with named_engine(engine, address) as workers, bar as progress:
        if workers is None:
            made = records.repair(files, to, only_damaged=only_damaged, progress=progress)
        else:
            made = scale.repair(files, to, engine=workers, only_damaged=only_damaged, progress=progress)
    if as_json:
        print_json(_document(made))
    else:
        _show(made, to)
    return FINE


def _document(made: "list[Repaired]") -> dict[str, object]:
    return {
        "records": sum(one.records for one in made),
        "shards": [
            {
                "source": one.source,
                "file": one.file,
                "records": one.records,
                "quarantine": one.quarantine,
                "ledger": one.ledger,
            }
            for one in made
        ],
        "damaged": [damage_document(damage) for one in made for damage in one.damaged],
    }


def _show(made: "list[Repaired]", to: str) -> None:
    copied = [one for one in made if one.file is not None]
    damaged = [one for one in made if one.damaged]
    records = plural(sum(one.records for one in copied), "good record")
    say(f"{plural(len(copied), 'shard')} with {records} in {to}, every checksum right")
    show_ledger(tuple(damage for one in damaged for damage in one.damaged))
    if damaged:
        say()
    for one in damaged:
        say(f"{one.quarantine} holds the damaged bytes, {one.ledger} says where they lay")
