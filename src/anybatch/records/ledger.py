"""What was damaged, where, and how much of that is too much."""

from collections.abc import Iterable, Iterator
from numbers import Real

from anybatch.errors import Damage, TooManyCorrupt


class Ledger:
    """Every damaged stretch met so far, each once: `(file, offset, length, reason)` in order of meeting."""

    def __init__(self, max_corrupt: float | None = None) -> None:
        self._allowed = checked_max(max_corrupt)
        self._met: dict[tuple[str, int], Damage] = {}

    def __len__(self) -> int:
        return len(self._met)

    def __iter__(self) -> Iterator[Damage]:
        return iter(list(self._met.values()))

    @property
    def allowed(self) -> float | None:
        """How much damage is no error yet: a count, or a fraction below 1."""
        return self._allowed

    def add(self, damages: Iterable[Damage]) -> None:
        """Note damage; an error once it is more than the count that is allowed."""
        for damage in damages:
            self._met.setdefault((damage[0], damage[1]), damage)
        if self._allowed is not None and not 0 < self._allowed < 1:
            self._refuse_above(self._allowed)

    def judge(self, records: int) -> None:
        """Compare with the fraction that is allowed, now that the number of records is known."""
        if self._allowed is not None and 0 < self._allowed < 1:
            self._refuse_above(self._allowed * records)

    def _refuse_above(self, limit: float) -> None:
        if self._allowed is not None and len(self._met) > limit:
            raise TooManyCorrupt(len(self._met), self._allowed, next(iter(self)))


def checked_max(max_corrupt: float | None) -> float | None:
    """Return `max_corrupt` if it is a count or a fraction below 1."""
    if max_corrupt is None:
        return None
    number = isinstance(max_corrupt, Real) and not isinstance(max_corrupt, bool)
    if not number or not max_corrupt >= 0 or (max_corrupt > 1 and max_corrupt % 1):
        raise ValueError(f"max_corrupt is {max_corrupt!r}; it is a count, or a fraction below 1")
    return max_corrupt
