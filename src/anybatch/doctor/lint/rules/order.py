"""The order in which records come: shuffled, how far, and how often."""

import ast
from collections.abc import Iterator
from itertools import product

from anybatch.doctor.findings import Finding, Severity
from anybatch.doctor.lint.chains import reads_files
from anybatch.doctor.lint.edits import argument_added, before_step, end_of, inserted, moved, patch, replaced
from anybatch.doctor.lint.found import ERROR, NOTE, WARNING, found
from anybatch.doctor.lint.uses import Purpose, Reading, Use
from anybatch.doctor.lint.values import Array, Known, Length, Order, Pipeline, Step

_BATCH = ("batch", "padded_batch")
_USUAL_BUFFER = 10_000


def not_shuffled(reading: Reading) -> Iterator[Finding]:
    """AB601: batches of neighbours."""
    for use in reading.uses:
        batch = use.chain.first(*_BATCH)
        if batch is None or use.chain.first("shuffle") or use.purpose not in _MAY_TRAIN:
            continue
        add = patch(
            reading.script,
            [inserted(before_step(reading.script, batch), f".shuffle({_whole_buffer(use.chain)})")],
        )
        yield found(
            "AB601",
            _without_shuffle(reading, use),
            batch,
            what="records go into batches in the order in which they are stored",
            evidence=f"{_steps(use.chain)} has no shuffle; {_order_shown(use.chain)}",
            fix=add,
        )


_MAY_TRAIN = (Purpose.TRAINING, Purpose.UNKNOWN)


def _without_shuffle(reading: Reading, use: Use) -> Severity:
    orders = {one.order for one in use.chain.source.arrays if isinstance(one, Array)}
    if Order.STACKED in orders:
        return ERROR if use.purpose is Purpose.TRAINING else WARNING
    if orders == {Order.RANDOM}:
        return NOTE
    if use.purpose is Purpose.UNKNOWN and use.call is not None and not _names_training(use.call):
        return NOTE
    known = use.purpose is Purpose.TRAINING or reads_files(reading.script, use.chain)
    return WARNING if known else NOTE


def _names_training(call: ast.Call) -> bool:
    return any(word in ast.unparse(call.func).lower() for word in ("train", "fit", "learn"))


def _order_shown(chain: Pipeline) -> str:
    arrays = [one for one in chain.source.arrays if isinstance(one, Array)]
    stacked = next((one for one in arrays if one.order is Order.STACKED), None)
    if stacked:
        return f"`{stacked.name}` is laid end to end from several arrays, so whole batches are of one kind"
    if arrays and all(one.order is Order.RANDOM for one in arrays):
        return "the arrays are drawn at random, so only the batches' sameness in every epoch is left"
    return "if they are sorted, a batch holds one class, and every epoch has the same batches"


def _whole_buffer(chain: Pipeline) -> str:
    if chain.source.kind == "anybatch":
        return "seed=7"
    array = next((one for one in chain.source.arrays if isinstance(one, Array)), None)
    if array is None:
        return f"{_USUAL_BUFFER:_}"
    return f"len({array.name})" if array.name else str(array.rows or f"{_USUAL_BUFFER:_}")


def _steps(chain: Pipeline) -> str:
    return "`" + "".join(f".{step.name}()" for step in chain.steps) + "`"


def batches_shuffled(reading: Reading) -> Iterator[Finding]:
    """AB602: shuffle behind batch."""
    for use in reading.uses:
        batch, shuffle = use.chain.first(*_BATCH), use.chain.first("shuffle")
        if batch is None or shuffle is None or use.chain.first("unbatch"):
            continue
        if use.chain.position("shuffle") < use.chain.position(*_BATCH):
            continue
        yield found(
            "AB602",
            WARNING,
            shuffle,
            what="shuffle comes after batch: whole batches change places, their records stay together",
            evidence=f"batch at line {batch.line}, shuffle at line {shuffle.line}",
            fix=patch(reading.script, moved(reading.script, shuffle, before_step(reading.script, batch))),
        )


def small_buffer(reading: Reading) -> Iterator[Finding]:
    """AB603: a buffer that sees only a part of the data at a time."""
    for use in reading.uses:
        shuffle = use.chain.first("shuffle")
        before_batch = use.chain.position("shuffle") < use.chain.position(*_BATCH)
        if shuffle is None or not before_batch or use.chain.source.kind in {"anybatch", "other"}:
            continue
        buffer, rows = shuffle.count("buffer_size"), use.chain.source.rows
        if buffer is None or isinstance(shuffle.given.get("buffer_size"), Length) or _names_only(use.chain):
            continue
        if rows is None or buffer < rows:
            yield _too_small(reading, use.chain, shuffle, buffer, rows)


def _names_only(chain: Pipeline) -> bool:
    """Whether what is shuffled are names of files, of which a few suffice."""
    opened = chain.position("interleave", "flat_map")
    return chain.source.kind == "names" and chain.position("shuffle") < opened


def _too_small(reading: Reading, chain: Pipeline, shuffle: Step, buffer: int, rows: int | None) -> Finding:
    if rows is None:
        return found(
            "AB603",
            NOTE,
            shuffle,
            what="the shuffle buffer mixes well only if it is about as large as the data",
            evidence=f"a buffer of {buffer:,}; the script does not show how many records there are",
            fix="`anybatch doctor PATHS --batch-size N` tells the smallest buffer that mixes this data",
        )
    drawn = all(one.order is Order.RANDOM for one in chain.source.arrays if isinstance(one, Array))
    given = [*shuffle.call.args, *(one.value for one in shuffle.call.keywords if one.arg == "buffer_size")]
    return found(
        "AB603",
        NOTE if drawn else WARNING,
        shuffle,
        what="the shuffle buffer is smaller than the data, so records meet only their neighbours",
        evidence=f"a buffer of {buffer:,} for {rows:,} records, {buffer / rows:.1%} of them",
        fix=patch(reading.script, [replaced(given[0], f"{rows:_}")]),
    )


def take_after_repeat(reading: Reading) -> Iterator[Finding]:
    """AB604: `repeat(...).take(n)` gives n in all."""
    for use in reading.uses:
        take, repeat = use.chain.first("take"), use.chain.first("repeat")
        if take is None or repeat is None or use.chain.position("take") < use.chain.position("repeat"):
            continue
        if _counts_updates(use.chain, repeat):
            continue
        yield found(
            "AB604",
            WARNING,
            take,
            what="take comes after repeat: it counts over all repetitions, so repeat may do nothing",
            evidence=f"repeat at line {repeat.line}, take at line {take.line}",
            fix=patch(reading.script, moved(reading.script, take, before_step(reading.script, repeat))),
        )


def _counts_updates(chain: Pipeline, repeat: Step) -> bool:
    """Whether take counts batches of an endless stream: that is how a number of steps is trained."""
    return _is_endless(repeat) and chain.position(*_BATCH) < chain.position("take")


def _is_endless(repeat: Step) -> bool:
    return repeat.given.get("count", Known(None)) in {Known(None), Known(-1)}


def repeat_before_shuffle(reading: Reading) -> Iterator[Finding]:
    """AB605: epochs run into each other."""
    for use in reading.uses:
        shuffle, repeat = use.chain.first("shuffle"), use.chain.first("repeat")
        if shuffle is None or repeat is None or use.chain.position("shuffle") < use.chain.position("repeat"):
            continue
        if use.chain.position(*_BATCH) < use.chain.position("shuffle"):
            continue
        yield found(
            "AB605",
            WARNING,
            repeat,
            what="repeat comes before shuffle: some records come twice before others come at all",
            evidence=f"repeat at line {repeat.line}, shuffle at line {shuffle.line}",
            fix=patch(reading.script, moved(reading.script, repeat, end_of(shuffle.call))),
        )


def split_that_moves(reading: Reading) -> Iterator[Finding]:
    """AB606: take and skip behind a shuffle that draws anew for each of them."""
    taking = [use for use in reading.uses if use.chain.first("take") and use.chain.first("shuffle")]
    skipping = [use for use in reading.uses if use.chain.first("skip")]
    for one, other in product(taking, skipping):
        take, skip = one.chain.first("take"), other.chain.first("skip")
        shuffle = one.chain.first("shuffle")
        if take is None or skip is None or shuffle is None or shuffle not in other.chain.steps:
            continue
        both = one.chain.position("shuffle") < one.chain.position("take")
        if not both or other.chain.position("skip") < other.chain.position("shuffle"):
            continue
        if shuffle.given.get("reshuffle_each_iteration") == Known(value=False):
            continue
        yield found(
            "AB606",
            WARNING,
            shuffle,
            what="take and skip split what is shuffled anew each time: held-out records get trained on",
            evidence=f"take at line {take.line} and skip at line {skip.line}, behind this shuffle",
            fix=patch(
                reading.script,
                [argument_added(reading.script, shuffle.call, "reshuffle_each_iteration=False")],
            ),
        )


def endless(reading: Reading) -> Iterator[Finding]:
    """AB607: fit would never finish its first epoch."""
    for use in reading.uses:
        repeat = use.chain.first("repeat")
        if repeat is None or use.call is None or use.purpose is not Purpose.TRAINING:
            continue
        given = {one.arg for one in use.call.keywords}
        ends = use.chain.first("take") or not _is_endless(repeat)
        if ends or given & {"steps_per_epoch", None}:
            continue
        add = argument_added(reading.script, use.call, "steps_per_epoch=len(x_train) // batch_size")
        yield found(
            "AB607",
            ERROR,
            use.call,
            what="the data set repeats for ever and fit has no steps_per_epoch: its first epoch never ends",
            evidence=f"repeat without a count at line {repeat.line}",
            fix=patch(reading.script, [add]),
        )


RULES = (
    not_shuffled,
    batches_shuffled,
    small_buffer,
    take_after_repeat,
    repeat_before_shuffle,
    split_that_moves,
    endless,
)
