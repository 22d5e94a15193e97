"""Values of frozen dataclasses as JSON and back: what a journal keeps is never code."""

from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


def plain(value: Any) -> Any:
    """Return a value as JSON has it: dataclasses as mappings, tuples as lists.

    >>> from anybatch.records import Shard
    >>> plain((Shard("a.tfrecord", ""), None))
    [{'path': 'a.tfrecord', 'compression': ''}, None]
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return value


def restored(kind: Any, value: Any) -> Any:
    """Return the value of that type which `plain` was made from.

    >>> from anybatch.records import Shard
    >>> restored(tuple[Shard, int | None], [{"path": "a.tfrecord", "compression": ""}, None])
    (Shard(path='a.tfrecord', compression=''), None)
    """
    if value is None:
        return None
    if isinstance(kind, type) and is_dataclass(kind):
        kinds = _kinds(kind)
        return kind(**{name: restored(kinds[name], one) for name, one in value.items()})
    inner = get_args(kind)
    if get_origin(kind) in {Union, UnionType}:
        return restored(next(one for one in inner if one is not type(None)), value)
    if get_origin(kind) is tuple:
        kinds_of_items = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(restored(one, item) for one, item in zip(kinds_of_items, value, strict=True))
    return value


@cache
def _kinds(kind: type) -> dict[str, Any]:
    # slower than all the rest, and the same for every value of a journal
    return get_type_hints(kind)
