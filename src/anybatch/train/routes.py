"""Where the memory limit and the plan enter `fit`."""

from anybatch.train.inputs import Source
from anybatch.train.plans import Plan
from anybatch.units import parse_size


def planned(
    source: Source, micro_batch_size: int | str, memory: str | int | None, device_memory: str | int | None
) -> Plan:
    """Return how batches are split at first: as told, else not at all until memory runs out."""
    limit = device_memory if device_memory is not None else memory
    return Plan(
        batch_size=source.batch_size,
        micro_batch_size=wanted_part(micro_batch_size, source.batch_size),
        parts=_parts(source.batch_size, micro_batch_size),
        limit_bytes=None if limit is None else parse_size(limit),
    )


def wanted_part(micro_batch_size: int | str, batch_size: int | None) -> int | None:
    """Return the rows of a part as somebody named them; those of a batch if they are to be found out."""
    if micro_batch_size == "auto":
        return batch_size
    if isinstance(micro_batch_size, bool) or not isinstance(micro_batch_size, int) or micro_batch_size < 1:
        raise ValueError(f"micro_batch_size={micro_batch_size!r}; give a number of samples from 1, or 'auto'")
    return micro_batch_size if batch_size is None else min(micro_batch_size, batch_size)


def _parts(batch_size: int | None, micro_batch_size: int | str) -> int | None:
    if batch_size is None:
        return None
    return 1 if not isinstance(micro_batch_size, int) else -(-batch_size // min(micro_batch_size, batch_size))
