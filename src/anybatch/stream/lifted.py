"""What a cache keeps, and which changes of order below it apply above it instead."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from anybatch.stream.epoch import Epoch
from anybatch.stream.filter import Filter
from anybatch.stream.order import Kept, OneToOne, Reordered, Step
from anybatch.stream.repeat import Repeat
from anybatch.stream.several import Mix, Several
from anybatch.stream.shuffle import Shuffle
from anybatch.stream.stage import Operation, Stage
from anybatch.stream.windows import WindowShuffle

SHUFFLES = frozenset({"shuffle", "window"})


@dataclass(frozen=True, slots=True)
class Lifted:
    """A stage as content that is the same in every epoch, and the changes of order behind it that are not."""

    content: Stage
    steps: tuple[Step, ...] = ()


def lifted(stage: Stage) -> Lifted:
    """Return a stage taken apart; a ValueError if its content depends on the epoch by more than order.

    Everything from the first shuffle on that merely changes the order is taken out, past functions that
    look at each record on its own. A part that is chosen before any shuffle stays: only it is kept.
    """
    if isinstance(stage, WindowShuffle):
        below = lifted(stage.parent)
        # what is kept has numbers
        return Lifted(below.content, (*below.steps, ("window", (stage.seed, stage.anew, stage.window_bytes))))
    if isinstance(stage, Reordered | Kept) or (isinstance(stage, Filter | OneToOne) and not stage.batched):
        below = lifted(stage.parent)
        if isinstance(stage, Reordered) and (below.steps or isinstance(stage, Shuffle)):
            return Lifted(below.content, (*below.steps, stage.step()))
        if isinstance(stage, Filter) and any(name not in SHUFFLES for name, _ in below.steps):
            raise ValueError(_TAKEN_THEN_FILTERED)
        return Lifted(replace(stage, parent=below.content), below.steps)
    _refuse_other_epochs(stage)
    return Lifted(stage)


def every_stage(stage: Stage) -> Iterator[Stage]:
    """Yield a stage and everything below it."""
    yield stage
    for parent in _parents(stage):
        yield from every_stage(parent)


def _parents(stage: Stage) -> tuple[Stage, ...]:
    if isinstance(stage, Operation):
        return (stage.parent,)
    return stage.parents if isinstance(stage, Several) else ()


def _depends_on_epoch(stage: Stage) -> bool:
    if isinstance(stage, Epoch):
        return False
    if isinstance(stage, Shuffle | WindowShuffle) and stage.anew:
        return True
    return isinstance(stage, Mix) or any(map(_depends_on_epoch, _parents(stage)))


def _refuse_other_epochs(stage: Stage) -> None:
    if isinstance(stage, Repeat):
        raise ValueError("cache behind repeat would keep every record several times; put cache before repeat")
    if not _depends_on_epoch(stage):
        return
    if stage.batched:
        raise ValueError(
            "cache behind batch would keep the batches of one epoch, and the shuffle before it would never "
            "mix them anew; put cache before batch"
        )
    what = stage.described()
    where = "each of the streams before" if isinstance(stage, Several) else "before"
    raise ValueError(
        f"cache behind `{what}` would keep the order of one epoch for all of them; put cache {where} it"
    )


_TAKEN_THEN_FILTERED = (
    "which records a filter sees here depends on the epoch, by the shuffle and the part taken of it, so its "
    "result cannot be kept; put cache before the shuffle"
)
