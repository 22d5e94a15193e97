"""Random contents of records, with the values that are easily lost, and protobuf messages that hold them."""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tests.records.wire import delimited

Values = np.ndarray[Any, Any] | list[bytes] | None
"""Float32 or int64 values or bytes; None is a feature without a kind."""

# zeros of both signs, infinities, the smallest number, NaNs that are quiet, signalling, with payload and sign
_FLOAT_BITS = (
    0,
    1 << 31,
    0x7F800000,
    0xFF800000,
    1,
    0x7FC00000,
    0x7F800001,
    0x7FC0BEEF,
    0xFFFFFFFF,
    0x3F800000,
)
_INTS = (0, 1, -1, 127, 128, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63))
_STRINGS = (b"", b"\0", b"a\0", b"\xff\xfe", "é".encode(), b"x" * 200)


class Contents:
    """Values by dtype, all of them decided by one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def chance(self, one_in: int) -> bool:
        return self._random.randrange(one_in) == 0

    def count(self, most: int) -> int:
        return self._random.randint(0, most)

    def values(self, dtype: str, count: int) -> Values:
        one = {"float32": self._float_bits, "int64": self._int, "bytes": self._string}[dtype]
        values = [one() for _ in range(count)]
        if dtype == "bytes":
            return values
        return np.array(values, "<u4").view("<f4") if dtype == "float32" else np.array(values, "<i8")

    def _float_bits(self) -> int:
        pick = self._random
        return pick.choice(_FLOAT_BITS) if pick.random() < 0.3 else pick.getrandbits(32)

    def _int(self) -> int:
        pick = self._random
        return pick.choice(_INTS) if pick.random() < 0.5 else pick.getrandbits(64) - 2**63

    def _string(self) -> bytes:
        pick = self._random
        return pick.choice(_STRINGS) if pick.random() < 0.5 else pick.randbytes(pick.randrange(6))


def as_written(values: Values) -> Any:
    """Return values as `ab.write` takes them: an empty list has no kind, an empty array that of its dtype."""
    if values is None:
        return []
    return np.array(values, object) if isinstance(values, list) else values


def fill(feature: Any, values: Values) -> None:
    """Put values into a tf.train.Feature, bit by bit: a Python float would make signalling NaNs quiet."""
    if values is None:
        feature.SetInParent()
    elif isinstance(values, list):
        feature.bytes_list.SetInParent()
        feature.bytes_list.value.extend(values)
    elif values.dtype.kind == "f":
        feature.float_list.SetInParent()
        feature.float_list.MergeFromString(delimited(1, values.tobytes()))
    else:
        feature.int64_list.SetInParent()
        feature.int64_list.value.extend(values.tolist())


def example(features: Mapping[str, Values]) -> tf.train.Example:
    """Return an Example that holds these values."""
    made = tf.train.Example()
    for name, values in features.items():
        fill(made.features.feature[name], values)
    return made


def sequence_example(
    context: Mapping[str, Values], lists: Mapping[str, list[Values]]
) -> tf.train.SequenceExample:
    """Return a SequenceExample that holds these values, and in the lists one more each step."""
    made = tf.train.SequenceExample()
    for name, values in context.items():
        fill(made.context.feature[name], values)
    for name, steps in lists.items():
        made.feature_lists.feature_list[name].SetInParent()
        for values in steps:
            fill(made.feature_lists.feature_list[name].feature.add(), values)
    return made
