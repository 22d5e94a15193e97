"""`anybatch doctor`: what is wrong with the data, and what to do about it."""

import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anybatch.cli.arguments import AddressOption, EngineOption, JsonOption, PathsArgument, refuse_unwritable
from anybatch.cli.engines import named_engine
from anybatch.cli.failures import reported
from anybatch.cli.findings import counted, exit_code, show_findings
from anybatch.cli.progress import bytes_of, progress_bar
from anybatch.cli.report import bar, plain_text, print_json, print_table, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from anybatch.doctor import Diagnosis
    from anybatch.doctor.measure import Progress
    from anybatch.scale import Engine

EXAMPLE = "Example:  anybatch doctor 'train/*.tfrecord' --batch-size 512 --memory 2GiB --html report.html"

# some hundred records are looked into together
_SURVEYED_BYTES = 256 << 20


@reported
def doctor(
    paths: PathsArgument,
    *,
    label: Annotated[str | None, typer.Option(help="The feature that is the label; else guessed.")] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="FILE:FUNCTION", help="What returns the model, or (model, stream)."),
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="The batch you want to train with.")] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="The memory there is; for a model else what the machine allows."),
    ] = None,
    shuffle_buffer: Annotated[int | None, typer.Option(min=1, help="The shuffle buffer you use.")] = None,
    prefetch: Annotated[int | None, typer.Option(min=1, help="The batches you prefetch.")] = None,
    steps_per_epoch: Annotated[int | None, typer.Option(min=1, help="The steps you give to fit.")] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="PATHS", help="Held-out shards that must not share records with these."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Look into every record, not a sample.")] = False,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page to look at.")] = None,
    engine: EngineOption = None,
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> int:
    """Say what is wrong with the data and the batch size, with evidence and a fix for each finding.

    Data up to 256 MiB is read in full, larger data by a sample.

    Exit code: 0 fine or only notes, 1 errors or warnings, 2 could not look.
    """
    from anybatch.doctor import diagnose

    refuse_unwritable(html)
    whole = True if everything else None
    with named_engine(engine, address) as workers:
        built, data = _built(model, paths)
        with _progress([*paths, *(against or [])], shown=not as_json) as progress:
            found = diagnose(
                {"these": data, "held out": against} if against else data,
                label=label,
                model=built,
                batch_size=batch_size,
                memory=memory,
                shuffle_buffer=shuffle_buffer,
                prefetch=prefetch,
                steps_per_epoch=steps_per_epoch,
                everything=whole,
                **_looking(workers, whole, progress),
            )
    if html:
        found.to_html(html)
    if as_json:
        print_json(found.document())
    else:
        _show(found, html)
    return exit_code(found.findings)


def _built(named: str | None, paths: list[str]) -> tuple[Any, Any]:
    """Return the model, and what to train it on: the stream that its function returns, or the paths."""
    if named is None:
        return None, paths
    from anybatch.cli.models import built_pair
    from anybatch.doctor.measure import stream_facts
    from anybatch.records import find_files

    model, stream = built_pair(named)
    if stream is None:
        return model, paths
    both = stream_facts(stream).files, find_files(paths)
    read, wanted = ({os.path.realpath(file) for file in files} for files in both)
    if read != wanted:
        other = min(read ^ wanted)
        told = f"`{named}` returned a stream of {len(read):,} files, and PATHS are {len(wanted):,}"
        raise ValueError(f"{told}: `{other}` is in one of them only; name the files that the stream reads")
    return model, stream


def _progress(paths: list[str], *, shown: bool) -> "AbstractContextManager[Progress | None]":
    from anybatch.records import find_files

    return progress_bar("looking", bytes_of(find_files(paths)), shown=shown)


def _looking(workers: "Engine | None", whole: bool | None, progress: "Progress | None") -> dict[str, Any]:
    """Return who looks into the files and is told how far that is: threads, or the tasks of an engine."""
    if workers is None:
        return {"progress": progress}
    return {"each": _Tasks(workers, whole, progress)}


@dataclass(frozen=True, slots=True)
class _Tasks:
    """Looks into files by a task each, on an engine."""

    workers: "Engine"
    whole: bool | None
    progress: "Progress | None"

    def __call__(self, make: "Callable[[Any], Any]", given: "Iterable[Any]", /) -> "Iterator[Any]":
        """Yield `make(file)` in order; what a journal holds of a sample is nothing for a full pass."""
        from anybatch.doctor.measure import ShardFacts, reads_everything
        from anybatch.scale import FileJob

        files = list(given)
        options = {"everything": reads_everything(files, self.whole)}
        job = FileJob(self.workers, "doctor", ShardFacts, options, _SURVEYED_BYTES, self.progress)
        return job.each(make, files)


def _show(found: "Diagnosis", html: str | None) -> None:
    say(found.verdict)
    say(f"Looked at {found.looked_at}.")
    say()
    show_findings(found.findings)
    _show_plan(found)
    _show_classes(found)
    say(counted(found.findings))
    if html:
        say(f"the page is `{html}`")


def _show_plan(found: "Diagnosis") -> None:
    tried = found.facts.training
    if tried is None or tried.plan is None:
        return
    from anybatch.train import Plan

    # what uses the bytes, and what could be done instead, `anybatch plan` and the page tell
    for line in Plan.__str__(tried.plan).splitlines():
        say(line)
    say()


def _show_classes(found: "Diagnosis") -> None:
    label = found.facts.sample.label
    if label is None or label.continuous:
        return
    counts = dict(zip(label.classes, label.counts.tolist(), strict=True))
    most = max(counts.values())
    rows = [(str(one), times, bar(times, most, plain=plain_text())) for one, times in counts.items()]
    print_table(f"classes of `{label.name}`", ("class", "records", ""), rows[:20])
    say()
