"""What is going to happen to every batch, said before training."""

from dataclasses import dataclass, field

from anybatch.units import size


@dataclass(frozen=True, slots=True)
class Plan:
    """One batch as so many parts, the memory that takes, and whether the update is that of the whole batch.

    A number that is None is not known: nothing was predicted, or the data does not tell its batch size.

    >>> print(Plan(batch_size=512, micro_batch_size=128, parts=4, limit_bytes=2 << 30))
    batch           512 = 4 x 128
    predicted peak  unknown
    limit           2 GiB
    exact           yes
    """

    batch_size: int | None
    micro_batch_size: int | None
    parts: int | None
    predicted_peak_bytes: int | None = None
    limit_bytes: int | None = None
    exact: bool = True
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        # what planning has found is found again in training, and said once
        object.__setattr__(self, "notes", tuple(dict.fromkeys(self.notes)))

    def __str__(self) -> str:
        rows = [
            ("batch", _batch(self)),
            ("predicted peak", _bytes(self.predicted_peak_bytes)),
            ("limit", _bytes(self.limit_bytes)),
            ("exact", "yes" if self.exact else "no"),
            *(("note", note) for note in self.notes),
        ]
        return "\n".join(f"{name:<16}{value}" for name, value in rows)


def _batch(plan: Plan) -> str:
    if plan.batch_size is None:
        return "as the data gives them"
    if plan.parts is None or plan.micro_batch_size is None or plan.parts == 1:
        return f"{plan.batch_size} whole"
    exactly = plan.parts * plan.micro_batch_size == plan.batch_size
    return f"{plan.batch_size} = {plan.parts} x {'' if exactly else 'up to '}{plan.micro_batch_size}"


def _bytes(n_bytes: int | None) -> str:
    return "unknown" if n_bytes is None else size(n_bytes)
