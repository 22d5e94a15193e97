"""Updates as a search asks for them, and the searches that are made of them."""

from dataclasses import dataclass, replace

from anybatch.memory import Probe
from anybatch.train.plan_pace import Pace
from anybatch.train.plan_pooled import PooledSearch
from anybatch.train.plan_search import MOST_PROBES, Search, Split
from anybatch.train.probe import Prober, RanOut, Taken


@dataclass(frozen=True, slots=True)
class Trials:
    """Updates of any size, counted from before the model was built."""

    prober: Prober
    built_bytes: int
    """What building has raised memory by."""
    largest: int | None
    """Nothing larger is tried: a supervisor has seen it die."""

    def starts(self) -> tuple[Taken, Taken]:
        """Trace all, and return what one sample takes, in one part and as one of several."""
        whole, several = self.prober.warm_up()
        return self._raised(whole), self._raised(several)

    def taken(self, rows: int, kind: Split) -> Taken | None:
        """Return what updates in parts of so many rows take; None if memory ran out."""
        if self.largest is not None and rows > self.largest:
            return None
        try:
            if kind is Split.ALL:
                return self._raised(self.prober.taken_by_all(rows))
            return self._raised(self.prober.taken(rows, several=kind is Split.SEVERAL))
        except RanOut:
            return None

    def rise_bytes(self, rows: int, kind: Split) -> int | None:
        """Return how far they raise memory."""
        taken = self.taken(rows, kind)
        return None if taken is None else taken.rise_bytes

    def pace(self, rows: int) -> Pace | None:
        """Return how long a batch takes in parts of so many rows; None if memory ran out after all."""
        try:
            taken = self._raised(self.prober.timed(rows))
        except RanOut:
            return None
        return Pace(rows, taken.seconds, taken.rise_bytes)

    def _raised(self, taken: Taken) -> Taken:
        rise_bytes, left_bytes = taken.rise_bytes + self.built_bytes, taken.left_bytes + self.built_bytes
        return replace(taken, rise_bytes=rise_bytes, left_bytes=left_bytes)


def ascending(trials: Trials, batch_size: int, free_bytes: int, *, grows: bool) -> Search:
    """Return the search where memory goes back. `grows`: sums of several parts grow with the batch."""
    whole, several = trials.starts()
    return Search(
        measure=trials.rise_bytes,
        batch_size=batch_size,
        free_bytes=free_bytes,
        start=Probe(1, several.rise_bytes),
        whole_start=Probe(1, whole.rise_bytes),
        # sums that grow with the batch take one more than it makes
        most_probes=MOST_PROBES - grows,
        sums_grow=grows,
    )


def pooled(
    trials: Trials, batch_size: int, free_bytes: int, *, sums_bytes: int, copy_bytes: int
) -> PooledSearch:
    """Return the search where an allocator keeps what it has had."""
    whole, several = trials.starts()
    return PooledSearch(
        trials.taken, batch_size, free_bytes, several, whole, sums_bytes=sums_bytes, copy_bytes=copy_bytes
    )
