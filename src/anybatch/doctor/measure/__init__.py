"""Measure a data set: files, records, values, labels. What is decided from that is decided elsewhere.

What looks at streams is imported when it is first asked for: files need none of it, and it was a fifth of
what the doctor took to import, 86 of 442 ms.
"""

import shlex
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from anybatch.doctor.measure.facts import (
    Asked,
    Facts,
    ModelFacts,
    Progress,
    SampleFacts,
    ShardFacts,
    TrainingFacts,
)
from anybatch.doctor.measure.files import reads_everything, refuse_missing, shard_facts
from anybatch.doctor.measure.labels import NoSuchLabel, checked_label, guessed_label
from anybatch.doctor.measure.models import model_facts
from anybatch.doctor.measure.sample import sample_of
from anybatch.records import Each, find_files, joined_sizes, on_threads

if TYPE_CHECKING:
    from anybatch.doctor.measure.streams import NoRecordFiles, rebatched, stream_facts
    from anybatch.doctor.measure.supervised import supervised_from
    from anybatch.doctor.measure.training import training_facts

_HOMES = {
    "NoRecordFiles": "streams",
    "rebatched": "streams",
    "stream_facts": "streams",
    "supervised_from": "supervised",
    "training_facts": "training",
}

__all__ = [
    "Asked",
    "Facts",
    "ModelFacts",
    "NoRecordFiles",
    "NoSuchLabel",
    "Progress",
    "SampleFacts",
    "ShardFacts",
    "TrainingFacts",
    "measured",
    "model_facts",
    "reads_everything",
    "rebatched",
    "stream_facts",
    "supervised_from",
    "training_facts",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def measured(
    paths: Sequence[str],
    *,
    label: str | None,
    everything: bool | None,
    progress: Progress | None = None,
    each: Each = on_threads,
) -> Facts:
    """Return what the files hold, from one pass over the records; of large data from a sample.

    `each` says who looks into the files; the sample, which is bounded, is always read here.
    """
    files = find_files(paths)
    refuse_missing(files)
    whole = reads_everything(files, everything)
    shards = shard_facts(files, everything=whole, progress=progress, each=each)
    named = guessed_label(shards) if label is None else checked_label(label, shards)
    return Facts(
        paths=" ".join(map(shlex.quote, paths)),
        shards=shards,
        everything=whole,
        sizes=joined_sizes(shard.sizes for shard in shards),
        sample=sample_of(shards, label=named, everything=whole),
        label=named,
    )
