"""How fast records can come: parsing, threads, prefetching, interleaving."""

import ast
from collections.abc import Iterator

from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.lint.chains import function_of, names_called, opens_files, reads_files
from anybatch.doctor.lint.edits import argument_added, end_of, inserted, patch, replaced
from anybatch.doctor.lint.found import ERROR, NOTE, WARNING, found
from anybatch.doctor.lint.uses import Purpose, Reading, Use
from anybatch.doctor.lint.values import Step

_DECODES = ("decode_jpeg", "decode_png", "decode_image", "decode_and_crop_jpeg", "decode_gif", "decode_wav")


def parsed_one_by_one(reading: Reading) -> Iterator[Finding]:
    """AB621: parse_single_example in front of batch."""
    for use in reading.uses:
        for step in use.chain.steps[: use.chain.position("batch", "padded_batch")]:
            called = _called(reading, step) if step.name == "map" else []
            if not any(name.endswith("parse_single_example") for name in called):
                continue
            decodes = [name for name in called if name.endswith(_DECODES)]
            yield found(
                "AB621",
                NOTE if decodes else WARNING,
                step,
                what="records are parsed one by one; parsing whole batches is several times faster",
                evidence="parse_single_example runs in a map in front of batch"
                + ("; decoding the images costs more than that" if decodes else ""),
                fix=".batch(batch_size).map(lambda records: tf.io.parse_example(records, features), "
                "num_parallel_calls=tf.data.AUTOTUNE)\n"
                '# or: data = ab.read("train/*.tfrecord").shuffle(seed=7).batch(batch_size)',
            )


def _called(reading: Reading, step: Step) -> list[str]:
    function = function_of(step)
    return [] if function is None else list(names_called(reading.script, function))


def not_prefetched(reading: Reading) -> Iterator[Finding]:
    """AB622: reading and training take turns."""
    for use in reading.uses:
        steps = use.chain.steps
        if not steps or use.chain.first("prefetch") or use.chain.source.kind == "anybatch":
            continue
        severity = _without_prefetch(reading, use)
        if severity is None:
            continue
        tf = reading.script.alias_of("tensorflow", "tf")
        add = inserted(end_of(steps[-1].call), f".prefetch({tf}.data.AUTOTUNE)")
        yield found(
            "AB622",
            severity,
            steps[-1],
            what="nothing is prefetched: the model waits for each batch, and the reader for each step",
            evidence="the chain " + "".join(f".{step.name}()" for step in steps) + " has no prefetch",
            fix=patch(reading.script, [add]),
        )


def _without_prefetch(reading: Reading, use: Use) -> Severity | None:
    if use.purpose is Purpose.TRAINING:
        return WARNING if reads_files(reading.script, use.chain) else NOTE
    return NOTE if reads_files(reading.script, use.chain) else None


def records_interleaved(reading: Reading) -> Iterator[Finding]:
    """AB623: each record is taken for the name of a file."""
    for use in reading.uses:
        source = use.chain.source
        opening = next((step for step in use.chain.steps if opens_files(reading.script, step)), None)
        if source.kind != "files" or opening is None:
            continue
        tf = reading.script.alias_of("tensorflow", "tf")
        rename = replaced(source.call.func, f"{tf}.data.Dataset.list_files")
        yield found(
            "AB623",
            ERROR,
            opening,
            what=f"{opening.name} opens a file for each record, as if the record were a file's name",
            evidence=f"the chain starts from records, `{ast.unparse(source.call)}`, not from file names",
            fix=patch(reading.script, [rename], renamed=ast.unparse(source.call.func).rsplit(".", 1)[-1]),
        )


def map_on_one_thread(reading: Reading) -> Iterator[Finding]:
    """AB624: a map without num_parallel_calls."""
    for use in reading.uses:
        if use.purpose is Purpose.HELD_OUT or not reads_files(reading.script, use.chain):
            continue
        for step in use.chain.steps:
            if (
                step.name != "map"
                or "num_parallel_calls" in step.given
                or use.chain.source.kind == "anybatch"
            ):
                continue
            tf = reading.script.alias_of("tensorflow", "tf")
            add = argument_added(reading.script, step.call, f"num_parallel_calls={tf}.data.AUTOTUNE")
            yield found(
                "AB624",
                NOTE,
                step,
                what="this map runs on one thread",
                evidence="map without num_parallel_calls",
                fix=patch(reading.script, [add]),
            )


def errors_ignored(reading: Reading) -> Iterator[Finding]:
    """AB626: ignore_errors drops the rest of a damaged file."""
    for use in reading.uses:
        step = use.chain.first("ignore_errors")
        if step is None:
            continue
        yield found(
            "AB626",
            WARNING,
            step,
            what="ignore_errors drops everything behind the first damaged record of a file, and says nothing",
            evidence="TFRecordDataset cannot go on behind damage; ignore_errors hides that it stopped",
            fix='data = ab.read("train/*.tfrecord", features, on_corrupt="skip", max_corrupt=100)'
            "  # leaves out the damaged records alone",
        )


RULES = (
    parsed_one_by_one,
    not_prefetched,
    records_interleaved,
    map_on_one_thread,
    errors_ignored,
)
