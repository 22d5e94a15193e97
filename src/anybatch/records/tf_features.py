"""Read the features of tf.io without importing TensorFlow: named tuples, known by name and fields."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from anybatch.errors import BadFeature

FIXED = "FixedLenFeature"
VARIABLE = "VarLenFeature"
RAGGED = "RaggedFeature"
PADDED = "FixedLenSequenceFeature"
SPARSE = "SparseFeature"

_FIELDS = {
    FIXED: ("shape", "dtype", "default_value"),
    VARIABLE: ("dtype",),
    RAGGED: ("dtype", "value_key", "partitions"),
    PADDED: ("shape", "dtype", "allow_missing", "default_value"),
    SPARSE: ("index_key", "value_key", "dtype"),
}


@dataclass(frozen=True, slots=True)
class TfFeature:
    """What a feature of tf.io says; fields that its class does not have are as if not given."""

    kind: str
    dtype: Any
    shape: Any = ()
    default: Any = None
    allow_missing: bool = False
    key: str | None = None

    def default_of_shape(self, shape: tuple[int, ...]) -> Any:
        """Return the default, reshaped if it has as many values, as TensorFlow does."""
        if self.default is None:
            return None
        try:
            # dtype=object: a NumPy string would lose the zero bytes at its end
            given = np.asarray(self.default, dtype=object)
        except (NotImplementedError, TypeError, ValueError):
            return self.default
        return given.reshape(shape).tolist() if given.size == math.prod(shape) else self.default


def describe(feature: Any) -> TfFeature | None:
    """Return what a feature of tf.io says, or None if it is something else."""
    kind = _kind(feature)
    if kind is None:
        return None
    if kind == SPARSE:
        way = f"Ragged(dtype) under the name {feature.value_key!r} reads the values"
        raise BadFeature(
            kind, f"SparseFeature would join indices and values of 2 lists, which is not done; {way}"
        )
    if kind == RAGGED and feature.partitions:
        way = "without them it reads the flat list, and Ragged('int64') reads the list that partitions it"
        raise BadFeature(kind, f"its {len(feature.partitions)} partitions are not applied; {way}")
    return TfFeature(
        kind,
        feature.dtype,
        shape=getattr(feature, "shape", ()),
        default=_value(getattr(feature, "default_value", None)),
        allow_missing=bool(getattr(feature, "allow_missing", False)),
        key=getattr(feature, "value_key", None),
    )


def _kind(feature: Any) -> str | None:
    names = (cls.__name__ for cls in type(feature).__mro__)
    kind = next((name for name in names if name in _FIELDS), None)
    has_all = kind is not None and all(hasattr(feature, field) for field in _FIELDS[kind])
    return kind if has_all else None


def _value(default: Any) -> Any:
    return default.numpy() if hasattr(default, "numpy") else default
