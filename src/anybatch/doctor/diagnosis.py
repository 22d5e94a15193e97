"""Diagnose a data set: measure it in one bounded pass, judge what was measured, say it."""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from anybatch.doctor.checks import judged
from anybatch.doctor.findings import Finding, worst
from anybatch.doctor.measure import Asked, Facts, Progress, measured, model_facts
from anybatch.doctor.measure.facts import SAMPLE_BLOCK
from anybatch.records import Each, on_threads
from anybatch.units import parse_size

if TYPE_CHECKING:
    from anybatch.stream import Stream

Data: TypeAlias = "Stream | str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Mapping[str, Any]"
"""Paths as `ab.read` takes them, a stream over such, or two of those by name: the first is trained on."""


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """What was found, and what it was found from.

    `findings` have a `code`, a `severity` of error, warning or note, `what`, `evidence` and a `fix`.

    >>> import tempfile
    >>> import anybatch as ab
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = ab.write(f"{folder}/a.tfrecord", [{"x": n / 7, "label": n % 2} for n in range(500)])
    ...     found = diagnose(files, batch_size=64)
    ...     found.to_html(f"{folder}/report.html")
    >>> found.verdict
    'Nothing stands in the way of training.'
    >>> found.looked_at
    'every one of 500 records'
    """

    findings: tuple[Finding, ...]
    facts: Facts
    asked: Asked

    @property
    def verdict(self) -> str:
        """One sentence on the whole."""
        severity = worst(self.findings)
        if severity == "error":
            return "Training on this will fail, or learn something else than is meant."
        if severity == "warning":
            return "Training will work, and something makes it worse than it has to be."
        return "Nothing stands in the way of training."

    @property
    def looked_at(self) -> str:
        """How much of the data this rests on, and what could not be judged: a label, or a model."""
        return f"{self._records_looked_at()}{self._label_left_out()}{self._model_left_out()}"

    def _model_left_out(self) -> str:
        if self.facts.model is None or self.facts.training is not None:
            return ""
        why = "it is not clear which features it takes; let the function return (model, stream)"
        if self.asked.streamed:
            why = "the stream gives no batches of (x, y); .as_supervised(x, y) makes them"
        return f"; the model was not tried: {why}"

    def _label_left_out(self) -> str:
        label, sample = self.facts.label, self.facts.sample
        if label is None or sample.label is not None or not sample.records:
            return ""
        lengths = sample.lengths.get(label)
        why = "could not be read" if lengths is None else "has no one class per record"
        if lengths is not None and lengths.usual != 1 and self.facts.is_number(label):
            why = f"has {lengths.usual:,} values per record"
        return f"; the label `{label}` {why}, so that classes and their order are not judged"

    def _records_looked_at(self) -> str:
        sample, records = self.facts.sample.records, self.facts.records
        if sample >= records:
            return f"every one of {records:,} records"
        # two standard errors of a share of one half, if the records of a block are all alike: never worse
        error = 2 * (0.25 * SAMPLE_BLOCK / max(1, sample)) ** 0.5
        exact = f"shares, but for those of copies, are right to ±{min(1, error):.1%} or better"
        values = f"the values of {sample:,} of {records:,} records: {exact}"
        return f"the kinds and checksums of all, and {values}" if self.facts.everything else values

    def __str__(self) -> str:
        lines = [f"{one.severity} {one.code}: {one.what}\n    {one.evidence}" for one in self.findings]
        return "\n".join([f"{self.verdict} Looked at {self.looked_at}.", *lines])

    def to_json(self) -> str:
        """Return everything for programs, as text."""
        return json.dumps(self.document(), indent=2, allow_nan=False)

    def document(self) -> dict[str, Any]:
        """Return everything for programs."""
        return {
            "verdict": self.verdict,
            "looked_at": self.looked_at,
            "records": self.facts.records,
            "sampled_records": self.facts.sample.records,
            "everything": self.facts.everything,
            "label": self.facts.label,
            "plan": _plan_document(self.facts),
            "findings": [asdict(finding) for finding in self.findings],
        }

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one page that shows everything and needs nothing else, not even a network."""
        from anybatch.doctor.report import page
        from anybatch.handover import place

        # names of files need not be text
        text = page(self).encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")
        place(Path(path), [text.encode()], durable=False)


def diagnose(
    data: Data,
    *,
    label: str | None = None,
    model: Any = None,
    batch_size: int | None = None,
    memory: str | int | None = None,
    shuffle_buffer: int | None = None,
    prefetch: int | None = None,
    steps_per_epoch: int | None = None,
    everything: bool | None = None,
    progress: Progress | None = None,
    each: Each = on_threads,
) -> Diagnosis:
    """Return what is wrong with record files, underneath the decoding: nothing in them is an exception.

    Up to 256 MiB are read in full, more by a sample unless `everything`. Two data sets by name,
    `{"train": paths, "test": paths}`, are compared: records of the first must not be in the second. With a
    model the first batches are tried as well, of a stream of `(x, y)` or of features that are clearly what
    the model takes; the weights stay as they are, and without `memory` it is planned with what machine and
    container allow. `progress` is told how many more bytes of the files were looked into. `each` says who
    does that: threads of this process, or the tasks of an engine.

    >>> import tempfile
    >>> import anybatch as ab
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = ab.write(f"{folder}/a.tfrecord", [{"x": n % 7, "label": n // 250} for n in range(500)])
    ...     [finding] = [one for one in diagnose(files, batch_size=64).findings if one.severity == "error"]
    >>> finding.code, finding.what
    ('AB301', 'the records are sorted or clustered by `label`: neighbours are alike')
    """
    first, *others = data.values() if isinstance(data, Mapping) else [data]
    _refuse_no_name(label)
    wanted = Asked(
        batch_size=_count(batch_size, "batch_size"),
        memory_bytes=_bytes(memory, model),
        shuffle_buffer=_count(shuffle_buffer, "shuffle_buffer"),
        prefetch=_count(prefetch, "prefetch"),
        steps_per_epoch=_count(steps_per_epoch, "steps_per_epoch"),
    )
    paths, asked = _asked(first, wanted)
    measure = partial(measured, everything=everything, progress=progress, each=each)
    facts = measure(paths, label=label)
    if others:
        # held-out records are compared as a whole: they may well have no label
        facts = replace(facts, other=measure(_paths(others[0]), label=None))
    if model is not None:
        facts = _tried(facts, model, first, asked)
    return Diagnosis(tuple(judged(facts, asked)), facts, asked)


def _tried(facts: Facts, model: Any, data: Any, asked: Asked) -> Facts:
    """Return the facts with what the model shows, and with what the first batches do to it."""
    from anybatch.doctor.measure import rebatched, supervised_from, training_facts

    facts = replace(facts, model=model_facts(model))
    stream = data if _is_stream(data) else supervised_from(facts, asked.batch_size)
    if stream is None:
        return facts
    stream = rebatched(stream, asked.batch_size)
    return replace(facts, training=training_facts(model, stream, asked.memory_bytes))


def _plan_document(facts: Facts) -> dict[str, Any] | None:
    plan = facts.training.plan if facts.training else None
    return None if plan is None else asdict(plan)


def _refuse_no_name(label: Any) -> None:
    if label is not None and (not isinstance(label, str) or not label):
        raise ValueError(f"label is {label!r}; it is the name of a feature, or None and it is guessed")


def _count(number: int | None, name: str) -> int | None:
    if number is None:
        return None
    from anybatch.stream.numbers import whole_number

    return whole_number(number, name, 1)


def _bytes(memory: str | int | None, model: Any) -> int | None:
    """Return the memory there is: as told, else for a model what machine and container allow."""
    if memory is not None:
        return parse_size(memory)
    if model is None:
        return None
    from anybatch.memory import allowance

    return allowance().limit_bytes


def _is_stream(data: Any) -> bool:
    """Whether data is a stream. Whoever made one has imported them, and nobody else waits for that."""
    streams = sys.modules.get("anybatch.stream")
    return streams is not None and isinstance(data, streams.Stream)


def _asked(data: Any, asked: Asked) -> tuple[list[str], Asked]:
    """Return the files that are meant, and what is asked; a stream knows its batch and shuffle itself."""
    if not _is_stream(data):
        return _paths(data), asked
    from anybatch.doctor.measure import stream_facts

    told = stream_facts(data)
    return told.files, replace(
        asked,
        batch_size=asked.batch_size or told.batch_size,
        shuffled=told.shuffled,
        streamed=True,
        changed=told.changed,
        drop_remainder=told.drop_remainder,
    )


def _paths(data: Any) -> list[str]:
    if _is_stream(data):
        from anybatch.doctor.measure import stream_facts

        return stream_facts(data).files
    if isinstance(data, str | os.PathLike):
        return [os.fspath(data)]
    try:
        return [os.fspath(one) for one in data]
    except TypeError:
        from anybatch.doctor.measure import NoRecordFiles

        raise NoRecordFiles(f"a {type(data).__name__}") from None
