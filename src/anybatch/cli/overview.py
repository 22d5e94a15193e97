"""The files of a data set as several commands show them."""

from typing import TYPE_CHECKING

from anybatch.cli.failures import COULD_NOT, FINE, WRONG, complain
from anybatch.cli.report import plural, print_table, say

if TYPE_CHECKING:
    from anybatch.errors import Damage
    from anybatch.records import Overview, ShardReport


def exit_code(overview: "Overview", *, finds_strangers: bool = False) -> int:
    """Return 2 if a file could not be examined, else 1 if something is damaged.

    For a command that `finds_strangers` a file that holds no records is something it found.
    """
    strangers = [shard for shard in overview.failed if not shard.unreadable]
    if len(overview.failed) > (len(strangers) if finds_strangers else 0):
        return COULD_NOT
    return WRONG if overview.damaged or strangers else FINE


def overview_document(overview: "Overview") -> dict[str, object]:
    """Return an overview for programs."""
    return {
        "records": overview.records,
        "bytes": overview.file_bytes,
        "shards": [_shard_document(shard) for shard in overview.shards],
        "damaged": [damage_document(damage) for damage in overview.damaged],
    }


def _shard_document(shard: "ShardReport") -> dict[str, object]:
    if shard.problem:
        return {"file": shard.file, "problem": shard.problem}
    return {
        "file": shard.file,
        "records": shard.records,
        "bytes": shard.file_bytes,
        "uncompressed_bytes": shard.stream_bytes,
        "compression": shard.compression or None,
        "verified": shard.verified,
        "damaged": len(shard.damaged),
        "sidecar": shard.sidecar,
        "read": not shard.from_sidecar,
    }


def damage_document(damage: "Damage") -> dict[str, object]:
    """Return one damaged stretch for programs."""
    file, offset, length, reason = damage
    return {"file": file, "offset": offset, "length": length, "reason": reason}


def show_failed(overview: "Overview") -> None:
    """Print a line for every file that could not be examined."""
    for shard in overview.failed:
        named = f"`{shard.file}`"
        problem = shard.problem or ""
        way_out = "" if shard.unreadable else "; a narrower glob leaves it out"
        complain((problem if named in problem else f"{named}: {problem}") + way_out)


def show_ledger(damaged: "tuple[Damage, ...]") -> None:
    """Print every damaged stretch."""
    if damaged:
        say()
        files = len({file for file, *_ in damaged})
        stretches = plural(len(damaged), "damaged stretch", "damaged stretches")
        print_table(
            f"{stretches} in {plural(files, 'shard')}", ("file", "offset", "length", "reason"), damaged
        )


def show_shards(overview: "Overview") -> None:
    """Print a line per file."""
    from anybatch.units import size

    rows = [
        (
            shard.file,
            shard.records,
            size(shard.file_bytes),
            shard.compression or "none",
            "every record" if shard.verified else "headers",
            len(shard.damaged),
        )
        for shard in overview.shards
        if not shard.problem
    ]
    if rows:
        say()
        print_table("", ("file", "records", "size", "compression", "checked", "damaged"), rows)
