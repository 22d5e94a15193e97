"""What to read from a record: frozen values that know how the native decoder is asked for them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from anybatch.errors import BadFeature
from anybatch.records.dtypes import (
    BYTES,
    IMAGE_CHANNELS,
    Shape,
    any_dtype,
    dtype_name,
    fixed_shape,
    number_dtype,
    plain_bytes,
    plain_numbers,
    short,
)
from anybatch.records.tf_features import PADDED, RAGGED, VARIABLE, TfFeature, describe

NativeField: TypeAlias = tuple[str, str, str, str, int, bytes | list[bytes] | None, bool]
"""Key, level, form, dtype, values per item, default, required: one field of the native schema."""


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Feature(ABC):
    """What one column is made from."""

    @abstractmethod
    def native_field(self, name: str) -> NativeField:
        """Return how the native decoder is asked for this feature."""

    def __repr__(self) -> str:
        settings = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        shown = (_shown(*setting) for setting in settings)
        return f"{type(self).__name__}({', '.join(text for text in shown if text)})"

    # by text: NaN is a common default, and not equal to itself
    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def _settle(self, **settings: Any) -> None:
        for name, value in settings.items():
            object.__setattr__(self, name, value)


def _shown(name: str, value: Any, default: Any) -> str:
    if name in ("dtype", "feature"):
        return repr(value)
    return f"{name}={value!r}" if default is MISSING or value != default else ""


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Numbers(Feature):
    """Values of a float list, or of an int64 list for integer and bool dtypes.

    >>> Numbers("float32", (3,), default=0.5)
    Numbers('float32', shape=(3,), default=0.5)
    """

    dtype: str
    shape: Shape = ()
    default: Any = None

    def __init__(self, dtype: Any = "float32", shape: Any = (), default: Any = None) -> None:
        dtype = number_dtype("Numbers", dtype)
        shape = fixed_shape("Numbers", shape, dtype=dtype)
        if default is not None:
            default = plain_numbers("Numbers", default, dtype=dtype, shape=shape)
        self._settle(dtype=dtype, shape=shape, default=default)

    def native_field(self, name: str) -> NativeField:
        item = None
        if self.default is not None:
            values = np.asarray(self.default, dtype=np.dtype(self.dtype).newbyteorder("<"))
            item = np.broadcast_to(values, self.shape).tobytes()
        return (name, "context", "dense", self.dtype, math.prod(self.shape), item, item is None)


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Raw(Feature):
    """A bytes value reinterpreted as an array, little-endian.

    >>> Raw("uint8", (28, 28, 1))
    Raw('uint8', shape=(28, 28, 1))
    """

    dtype: str
    shape: Shape

    def __init__(self, dtype: Any, shape: Any) -> None:
        dtype = number_dtype("Raw", dtype)
        self._settle(dtype=dtype, shape=fixed_shape("Raw", shape, dtype=dtype))

    def native_field(self, name: str) -> NativeField:
        return (name, "context", "raw", self.dtype, math.prod(self.shape), None, True)


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Image(Feature):
    """A JPEG or PNG decoded and resized to uint8 of shape (height, width, channels).

    1 channel is grey, 3 are RGB and 4 RGBA; every kind of file gives any of them. Proportions are not kept
    and EXIF rotation is not applied, as in TensorFlow.

    The resize is `tf.image.resize(..., method="bilinear", antialias=True)`, rounded to uint8. Where nothing
    is resized, a JPEG has the pixels of `tf.io.decode_jpeg(..., dct_method="INTEGER_ACCURATE")` and a PNG
    those of `tf.io.decode_png`, exactly. Resized pixels are within 1 of TensorFlow's, except where a JPEG
    is made at least twice smaller: it is decoded at 1/2, 1/4 or 1/8 of its size first and comes out a little
    sharper. On photographs of 512 pixels made 224, that is 1.1 on average and 9 at the 99th percentile;
    tolerances of 2.5 and 9 are tested. (Leaving out TensorFlow's `antialias` makes 3.6 and 33.)

    A file that cannot be decoded is a damaged record: `on_corrupt` says what becomes of it. So is one that
    claims more than 64 Mi pixels, or more than its bytes could hold. A sound image that the stream's limit
    leaves no room for is not damaged: it is refused under `on_corrupt="skip"` too, with the limit that would
    do, because which records come must not depend on how much memory there is.

    >>> Image(224, 224)
    Image(height=224, width=224)
    """

    height: int
    width: int
    channels: int = 3

    def __init__(self, height: Any, width: Any, channels: Any = 3) -> None:
        shape = fixed_shape("Image", (height, width, channels), dtype="uint8", empty=False)
        if shape[2] not in IMAGE_CHANNELS:
            raise BadFeature("Image", f"it has {shape[2]} channels; 1 is grey, 3 are RGB and 4 RGBA")
        self._settle(height=shape[0], width=shape[1], channels=shape[2])

    @property
    def dtype(self) -> str:
        """Always "uint8"."""
        return "uint8"

    @property
    def shape(self) -> Shape:
        """Height, width and channels."""
        return self.height, self.width, self.channels

    def native_field(self, name: str) -> NativeField:
        form = "image {}x{}x{}".format(*self.shape)
        return (name, "context", form, self.dtype, math.prod(self.shape), None, True)


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Bytes(Feature):
    """A bytes value as it is, or as many of them as the shape holds.

    >>> Bytes(default=b"none")
    Bytes(default=b'none')

    A batch of them has `to_list()`:

    >>> import tempfile
    >>> import anybatch as ab
    >>> folder = tempfile.TemporaryDirectory()
    >>> shards = ab.write(f"{folder.name}/words.tfrecord", [{"word": b"to"}, {"word": b"be"}])
    >>> batch = next(iter(ab.read(shards, {"word": ab.Bytes()}).batch(2)))
    >>> batch["word"].to_list()
    [b'to', b'be']
    >>> folder.cleanup()
    """

    default: Any = None
    shape: Shape = ()

    def __init__(self, default: Any = None, shape: Any = ()) -> None:
        shape = fixed_shape("Bytes", shape, dtype=BYTES, empty=False)
        if default is not None:
            default = plain_bytes("Bytes", default, shape=shape)
        self._settle(default=default, shape=shape)

    def native_field(self, name: str) -> NativeField:
        item = None
        if self.default is not None:
            item = list(np.broadcast_to(np.asarray(self.default, dtype=object), self.shape).flat)
        return (name, "context", "dense", BYTES, math.prod(self.shape), item, item is None)


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Ragged(Feature):
    """A list of any length; a missing one is empty. `key`: its name in the record, if not the column's.

    >>> Ragged("int64"), Ragged(bytes)
    (Ragged('int64'), Ragged('bytes'))

    A batch of them has all values end to end, where each list begins, and `to_padded`:

    >>> import tempfile
    >>> import anybatch as ab
    >>> folder = tempfile.TemporaryDirectory()
    >>> shards = ab.write(f"{folder.name}/lists.tfrecord", [{"ids": [3, 1, 2]}, {"ids": []}, {"ids": [7]}])
    >>> ids = next(iter(ab.read(shards, {"ids": ab.Ragged("int64")}).batch(3)))["ids"]
    >>> ids.values.tolist(), ids.offsets.tolist()
    ([3, 1, 2, 7], [0, 3, 3, 4])
    >>> ids.to_padded(value=0).tolist()
    [[3, 1, 2], [0, 0, 0], [7, 0, 0]]
    >>> folder.cleanup()
    """

    dtype: str
    key: str | None = None

    def __init__(self, dtype: Any, *, key: str | None = None) -> None:
        if not isinstance(key, str | None):
            raise BadFeature("Ragged", f"key= is {_named(key)}; names are str")
        self._settle(dtype=any_dtype("Ragged", dtype), key=key)

    def native_field(self, name: str) -> NativeField:
        return (name if self.key is None else self.key, "context", "ragged", self.dtype, 0, None, False)


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Sequence(Feature):
    """One feature list of a SequenceExample: in each step what `feature` says.

    A missing list is an error unless `allow_missing`; one of `Ragged` steps is empty then, as in TensorFlow.

    >>> Sequence(Numbers("float32", (2,)))
    Sequence(Numbers('float32', shape=(2,)))
    """

    feature: Numbers | Raw | Bytes | Ragged
    allow_missing: bool = False

    def __init__(self, feature: Any, allow_missing: bool = False) -> None:
        described = describe(feature)
        if described is not None:
            allow_missing = allow_missing or described.allow_missing
            feature = _step_of(described)
        if not isinstance(feature, Numbers | Raw | Bytes | Ragged):
            steps = "Numbers, Raw, Bytes or Ragged"
            raise BadFeature("Sequence", f"a step is {_named(feature)}; each step can be {steps}")
        if not isinstance(feature, Raw | Ragged) and feature.default is not None:
            problem = f"its steps have the default {short(feature.default)} and no step is ever missing"
            raise BadFeature("Sequence", f"{problem}; allow_missing=True reads a missing list as empty")
        self._settle(feature=feature, allow_missing=bool(allow_missing))

    def native_field(self, name: str) -> NativeField:
        key, _, form, dtype, count, _, required = self.feature.native_field(name)
        return (key, "list", form, dtype, count, None, required and not self.allow_missing)


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Padded(Feature):
    """Lists of any length, made as long as the longest of the batch: tf.io's FixedLenSequenceFeature.

    A record alone keeps its own length, as in `parse_single_example`; functions that take columns of some
    records before `batch` get an array as long as the longest of those.
    """

    dtype: str
    shape: Shape = ()
    default: Any = None

    def __init__(self, dtype: Any, shape: Any = (), default: Any = None) -> None:
        dtype = any_dtype("Padded", dtype)
        shape = fixed_shape("Padded", shape, dtype=dtype, empty=False)
        if dtype == BYTES:
            default = plain_bytes("Padded", b"" if default is None else default, shape=())
        else:
            default = plain_numbers("Padded", 0 if default is None else default, dtype=dtype, shape=())
        self._settle(dtype=dtype, shape=shape, default=default)

    def native_field(self, name: str) -> NativeField:
        return (name, "context", "ragged", self.dtype, math.prod(self.shape), None, False)


def _step_of(described: TfFeature) -> Numbers | Bytes | Ragged:
    if described.kind in (VARIABLE, RAGGED):
        return Ragged(described.dtype, key=described.key)
    return _fixed(described)


def _fixed(described: TfFeature) -> Numbers | Bytes:
    dtype = any_dtype(described.kind, described.dtype)
    shape = fixed_shape(described.kind, described.shape, dtype=dtype)
    default = described.default_of_shape(shape)
    return Bytes(default, shape) if dtype == BYTES else Numbers(dtype, shape, default)


def _from_tf(described: TfFeature) -> Feature:
    if described.kind != PADDED:
        return _step_of(described)
    if not described.allow_missing:
        ways = "True pads the lists of an Example, Sequence(...) reads a list of a SequenceExample"
        raise BadFeature(described.kind, f"allow_missing=False is refused, as by tf.io; {ways}")
    return Padded(described.dtype, described.shape, described.default_of_shape(()))


def resolve(features: Mapping[str, Any]) -> dict[str, Feature]:
    """Return the feature of every column, those of tf.io turned into ours."""
    if not isinstance(features, Mapping):
        raise BadFeature("features", f"they are {_named(features)}; give a mapping from name to feature")
    if not features:
        raise BadFeature("features", "the mapping holds 0 of them; name at least 1, or infer them with None")
    return {name: _resolved(name, feature) for name, feature in features.items()}


def native_fields(resolved: Mapping[str, Feature]) -> list[NativeField]:
    """Return the fields of the native schema, in the order of the columns."""
    return [feature.native_field(name) for name, feature in resolved.items()]


def _resolved(name: Any, feature: Any) -> Feature:
    if not isinstance(name, str):
        raise BadFeature(repr(name), f"its name is {_named(name)}; names are str")
    if isinstance(feature, Feature):
        return feature
    try:
        described = describe(feature)
        if described is not None:
            return _from_tf(described)
    except BadFeature as bad:
        # the user knows it by the name of its column
        raise BadFeature(name, bad.problem) from None
    raise BadFeature(name, _why_none(feature))


def _why_none(feature: Any) -> str:
    if isinstance(feature, type) and issubclass(feature, Feature):
        return f"{feature.__name__} is the class of it; write {feature.__name__}(...)"
    dtype = dtype_name(feature)
    if dtype is None:
        return f"it is {_named(feature)}; use Numbers, Raw, Image, Bytes, Ragged, Sequence or one of tf.io"
    one = "Bytes()" if dtype == BYTES else f"Numbers('{dtype}')"
    return f"{short(feature)} is a dtype, not a feature; {one} reads 1 value, Ragged('{dtype}') a list"


def _named(value: Any) -> str:
    if isinstance(value, Feature | str | None):
        return short(value)
    return f"of type {type(value).__name__}"
