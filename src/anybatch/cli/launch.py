"""`anybatch launch`: one script on several workers, as on one machine."""

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from anybatch.cli.arguments import (
    AddressOption,
    EngineName,
    FolderOption,
    RetriesOption,
    ScriptArgument,
    ScriptArguments,
    existing,
)
from anybatch.cli.failures import complain, reported

if TYPE_CHECKING:
    from anybatch.scale.workers_places import Places

EXAMPLE = "Example:  anybatch launch --workers 4 train.py --epochs 10"


@reported
def launch(
    script: ScriptArgument,
    arguments: ScriptArguments = None,
    *,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="How many; not needed inside a cluster that sets TF_CONFIG."),
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="Who starts them.")] = EngineName.LOCAL,
    address: AddressOption = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="What each may hold; default: its share of what is there."),
    ] = None,
    retries: RetriesOption = 10,
    folder: FolderOption = None,
    join_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="How long to wait until all are there.")
    ] = 600.0,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="How long to wait for a worker in one update.")
    ] = 300.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON event per line on stdout; scripts print to stderr.")
    ] = False,
) -> int:
    """Train on several workers: each takes its slice of every batch, and all make the same update.

    `.batch(n)` is the batch of all of them together. Worker 0 writes. When one dies, all stop at the last
    update and are started again from the last state, with smaller parts where memory was the reason; one line
    says which one and why. The number of workers may be another one at the next start.

    Exit code: 0, or that of the worker that failed first; 128 + N if signal N ended it; 2 if none started.
    """
    from anybatch.handover import Occupied
    from anybatch.scale.launch import Launch, Signals, launched
    from anybatch.scale.workers_places import lines_to
    from anybatch.supervise.folder import AlreadyRuns, run_folder
    from anybatch.supervise.relay import Relay
    from anybatch.train.workers import membership
    from anybatch.units import parse_size

    member = membership()
    if member is not None and engine is EngineName.RAY:
        raise ValueError("TF_CONFIG has placed this worker already, so Ray cannot; leave --engine ray out")
    settings = Launch(
        script=existing(script),
        arguments=tuple(arguments or ()),
        workers=_count(workers, None if member is None else member.size),
        folder=run_folder(script, arguments or (), folder),
        command=("-m", "anybatch.cli.launched"),
        member=member,
        memory_bytes=None if memory is None else parse_size(memory),
        retries=retries,
        join_seconds=join_timeout,
        peer_seconds=timeout,
    )
    say = lines_to(sys.stderr if as_json else sys.stdout, sys.stderr, settings.ranks)
    places = _places(engine, address, join_timeout)
    try:
        with Relay() as relay:
            return launched(settings, places, say, _note(as_json), Signals(relay.taken, relay.wait))
    except Occupied as occupied:
        raise AlreadyRuns(str(occupied)) from None
    finally:
        places.close()


def _count(wanted: int | None, in_cluster: int | None) -> int:
    if wanted is None and in_cluster is None:
        raise ValueError("how many workers? --workers N says it, or TF_CONFIG inside a cluster")
    if wanted is not None and in_cluster is not None and wanted != in_cluster:
        raise ValueError(f"--workers is {wanted} and TF_CONFIG names {in_cluster}; leave --workers out")
    return in_cluster or wanted or 1


def _places(engine: EngineName, address: str | None, patience_seconds: float) -> "Places":
    if engine is EngineName.LOCAL:
        from anybatch.scale.workers_places import LocalPlaces

        return LocalPlaces()
    from anybatch.scale.workers_ray import RayPlaces

    return RayPlaces(address, patience_seconds=patience_seconds)


def _note(as_json: bool) -> Callable[[str], None]:
    return _event if as_json else complain


def _event(text: str) -> None:
    print(json.dumps({"event": "note", "text": text}), flush=True)
