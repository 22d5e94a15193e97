"""Streams for TensorFlow: as a `tf.data.Dataset`, or as eager tensors. Dense columns are not copied."""

import functools
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from anybatch.errors import AnybatchError
from anybatch.records import RaggedColumn, aligned_copy, is_aligned
from anybatch.stream.chunk import close
from anybatch.stream.declared import length_is_certain
from anybatch.stream.interop.tensorflow_generated import generated
from anybatch.stream.interop.tensorflow_specs import Spec, bytes_of_a_batch, specs_found, specs_given
from anybatch.stream.iterator import StreamIterator
from anybatch.stream.layout import as_lists, named_leaves
from anybatch.stream.limits import bounded
from anybatch.stream.run import Run
from anybatch.stream.stage import Endless, Stage
from anybatch.stream.structure import Structure, as_columns, leaves, mapped

Begin: TypeAlias = Callable[[int], Run]
"""A new run of a given epoch."""

# a call from TensorFlow into Python takes as long as decoding a few hundred KiB: small batches share calls
_SMALL_BYTES = 1 << 20
_BATCHES_PER_CALL = 8
# and none waits longer than this for the others
_SECONDS_PER_CALL = 0.002


class ShapeDiffers(AnybatchError, ValueError):
    """An element that is not of the shape that those before it had."""

    def __init__(self, column: str, expected: str, found: str) -> None:
        super().__init__(column, expected, found)
        self.column = column
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        return (
            f"{self.column or 'an element'} is {self.found} where the first elements were {self.expected}; "
            "to_tf(element_spec=...) says which dimensions vary"
        )


def tensor(leaf: Any) -> Any:
    """Return a column as a tensor. Only what is not aligned, or read-only, is copied."""
    if isinstance(leaf, RaggedColumn):
        return tf.RaggedTensor.from_row_splits(tensor(leaf.values), tensor(leaf.offsets), validate=False)
    array = np.asarray(leaf)
    if array.dtype.kind not in "biufc":
        return tf.convert_to_tensor(array)
    # the capsule keeps the array alive for as long as TensorFlow holds the tensor; memory that is not aligned
    # would end the process at the first operation
    return tf.experimental.dlpack.from_dlpack(
        (array if is_aligned(array) else aligned_copy(array)).__dlpack__()
    )


def dataset(stage: Stage, begin: Begin, element_spec: Structure = None) -> Any:
    """Return a `tf.data.Dataset` of a stage's elements, each iteration of which is the next epoch."""
    if element_spec is None:
        specs = specs_found(stage, lambda one: _elements(one, Run()))
    else:
        specs = specs_given(element_spec, stage)
    bridge = _Bridge(specs)
    epochs = itertools.count()

    def arrays() -> Iterator[Any]:
        with closing(_elements(stage, begin(next(epochs)))) as elements:  # type: ignore[type-var]
            yield from map(bridge.arrays, elements)

    if stage.batched and bridge.is_dense and bytes_of_a_batch(specs, stage) < _SMALL_BYTES:
        found = bridge.several_at_a_time(arrays)
    else:
        found = bridge.one_at_a_time(arrays)
    return _with_length(found if stage.batched else _unbatched(found, specs), stage)


def _elements(stage: Stage, run: Run) -> Iterator[Structure]:
    """Yield batches; of records that are in none, columns of as many as come at a time."""
    if stage.batched:
        with closing(StreamIterator(stage, run)) as batches:
            yield from batches
        return
    chunks = stage.open(bounded(run, stage), None)
    try:
        for chunk in chunks:
            yield as_columns(chunk.value)
    finally:
        close(chunks)


class _Port:
    """How one column gets from here to there: as arrays, one or several, that become one tensor."""

    def __init__(self, name: str, spec: Spec) -> None:
        self._name = name
        self._spec = spec
        self._ragged_rank = spec.ragged_rank if isinstance(spec, tf.RaggedTensorSpec) else 0
        flat_shape = spec.shape[self._ragged_rank :]
        self._flat = tf.TensorSpec(None if flat_shape.rank is None else [None, *flat_shape[1:]], spec.dtype)
        if not spec.shape.rank and spec.shape.rank is not None:
            self._flat = spec
        self._dtype = np.dtype(object if spec.dtype == tf.string else spec.dtype.as_numpy_dtype)
        self._expected = None if spec.shape.rank is None else tuple(flat_shape)

    @property
    def specs(self) -> list[Spec]:
        """The arrays' specs: values, then row splits, the outermost first."""
        return [self._flat, *[tf.TensorSpec([None], tf.int64)] * self._ragged_rank]

    def arrays(self, leaf: Any) -> list[NDArray[Any]]:
        """Return a column as arrays."""
        splits = []
        for _ in range(self._ragged_rank):
            lists = as_lists(leaf)
            if lists is None:
                raise self._differs(leaf)
            splits.append(lists.offsets)
            leaf = lists.values
        if isinstance(leaf, RaggedColumn):
            raise self._differs(leaf)
        values = np.asarray(leaf)
        fits = values.dtype == self._dtype or (self._dtype.hasobject and values.dtype.kind in "SU")
        if not fits or not _compatible(values.shape, self._expected):
            raise self._differs(values)
        return [values, *splits]

    def tensor(self, tensors: Iterator[Any]) -> Any:
        """Return the column that came through as tensors."""
        made = next(tensors)
        splits = [next(tensors) for _ in range(self._ragged_rank)]
        if splits:
            rows = self._spec.shape[0]
            splits[0].set_shape([None if rows is None else rows + 1])
            made.set_shape(self._flat.shape)
            return tf.RaggedTensor.from_nested_row_splits(made, splits, validate=False)
        made.set_shape(self._spec.shape)
        return made

    def _differs(self, found: Any) -> ShapeDiffers:
        is_array = isinstance(found, np.ndarray)
        text = f"{found.dtype} of shape {found.shape}" if is_array else f"a {type(found).__name__}"
        return ShapeDiffers(self._name, f"{self._spec.dtype.name} of shape {self._spec.shape}", text)


def _compatible(shape: tuple[int, ...], expected: tuple[int | None, ...] | None) -> bool:
    if expected is None:
        return True
    return len(shape) == len(expected) and all(
        wanted is None or wanted == size for size, wanted in zip(shape, expected, strict=True)
    )


class _Bridge:
    """How elements get from here to there, column by column."""

    def __init__(self, specs: Structure) -> None:
        self._specs = specs
        self._ports = [_Port(name, spec) for name, spec in named_leaves(specs)]

    @property
    def is_dense(self) -> bool:
        """Whether every column is one array of numbers, and none is left out."""
        parts = tf.nest.flatten(self._specs)
        return all(isinstance(one, tf.TensorSpec) and one.dtype != tf.string for one in parts)

    def arrays(self, element: Structure) -> list[NDArray[Any]]:
        """Return an element as arrays, in the order of its columns."""
        count = sum(1 for _ in leaves(element))
        if count != len(self._ports):
            raise ShapeDiffers("", f"{len(self._ports)} columns", f"{count} columns")
        # by name: elements of several streams may have them in another order
        in_order = leaves(mapped(lambda _, leaf: leaf, self._specs, element))
        return [
            array for port, leaf in zip(self._ports, in_order, strict=True) for array in port.arrays(leaf)
        ]

    def one_at_a_time(self, elements: Callable[[], Iterator[list[NDArray[Any]]]]) -> Any:
        """Return a dataset of elements that come as arrays."""
        if self.is_dense:
            return _straight(elements, self._flat_specs, self._structured)
        signature = tuple(spec for port in self._ports for spec in port.specs)
        flat = tf.data.Dataset.from_generator(lambda: map(tuple, elements()), output_signature=signature)
        return flat.map(_as_written(lambda *tensors: self._packed(tensors)))

    def several_at_a_time(self, elements: Callable[[], Iterator[list[NDArray[Any]]]]) -> Any:
        """Return the same, where one call brings several elements."""
        nothing = [
            np.empty([size or 0 for size in spec.shape], spec.dtype.as_numpy_dtype)
            for spec in self._flat_specs
        ]

        def groups() -> Iterator[list[NDArray[Any]]]:
            with closing(elements()) as rest:  # type: ignore[type-var]
                for group in _groups(rest):
                    missing = [nothing] * (_BATCHES_PER_CALL - len(group))
                    yield [np.array(len(group)), *itertools.chain(*group, *missing)]

        flat = [tf.TensorSpec((), tf.int64), *self._flat_specs * _BATCHES_PER_CALL]
        return _straight(groups, flat, tuple).flat_map(_as_written(self._one_by_one))

    @property
    def _flat_specs(self) -> list[Spec]:
        return [spec for _, spec in named_leaves(self._specs)]

    def _one_by_one(self, count: Any, *tensors: Any) -> Any:
        """Return the elements of a group as a dataset; their memory stays what it is."""
        columns = len(self._ports)
        elements = [self._structured(tensors[at : at + columns]) for at in range(0, len(tensors), columns)]
        single = [tf.data.Dataset.from_tensors(element) for element in elements]
        return functools.reduce(lambda some, one: some.concatenate(one), single).take(count)

    def _structured(self, tensors: Sequence[Any]) -> Structure:
        rest = iter(tensors)
        return mapped(lambda _: next(rest), self._specs)

    def _packed(self, tensors: Any) -> Structure:
        rest, ports = iter(tensors), iter(self._ports)
        return mapped(lambda _: next(ports).tensor(rest), self._specs)


def _straight(
    elements: Callable[[], Iterator[list[NDArray[Any]]]],
    specs: list[Spec],
    structured: Callable[[Sequence[Any]], Structure],
) -> Any:
    """Return a dataset whose tensors are the arrays themselves, where those are aligned."""
    passes = _Passes(elements)

    def following(number: Any) -> Structure:
        # aligned arrays become tensors as they are; `py_function` would take three times as long for it
        tensors = tf.numpy_function(passes.next, [number], [spec.dtype for spec in specs])
        for one, spec in zip(tensors, specs, strict=True):
            one.set_shape(spec.shape)
        return structured(tensors)

    return generated(
        lambda _: tf.numpy_function(passes.begin, [], tf.int64),
        following,
        lambda number: tf.numpy_function(passes.end, [number], tf.int64),
        structured(specs),
    )


class _Passes:
    """Passes over a stream under way, each with a number by which TensorFlow asks for the next element."""

    def __init__(self, open_pass: Callable[[], Iterator[list[Any]]]) -> None:
        self._open = open_pass
        self._numbers = itertools.count()
        self._under_way: dict[int, Iterator[list[Any]]] = {}

    def begin(self) -> Any:
        number = next(self._numbers)
        self._under_way[number] = self._open()
        return np.int64(number)

    def next(self, number: Any) -> list[Any]:
        # StopIteration is what tells TensorFlow of the end
        return next(self._under_way[int(number)])

    def end(self, number: Any) -> Any:
        close(self._under_way.pop(int(number)))
        return np.int64(0)


def _groups(elements: Iterator[list[NDArray[Any]]]) -> Iterator[list[list[NDArray[Any]]]]:
    """Yield elements in groups, none of which waits longer than a moment for the others."""
    group: list[list[NDArray[Any]]] = []
    start = 0.0
    try:
        for one in elements:
            start = start if group else time.perf_counter()
            group.append(one)
            if len(group) == _BATCHES_PER_CALL or time.perf_counter() - start > _SECONDS_PER_CALL:
                yield group
                group = []
    except Exception:
        # what came before the failure comes before it there too
        if group:
            yield group
        raise
    if group:
        yield group


def _as_written(function: Callable[..., Any]) -> Any:
    return tf.autograph.experimental.do_not_convert(function)


def _unbatched(columns: Any, specs: Structure) -> Any:
    """Return the rows of columns; a row of a ragged column is a tensor of any length."""
    rows = columns.unbatch()
    if not any(isinstance(spec, tf.RaggedTensorSpec) for _, spec in named_leaves(specs)):
        return rows

    def plain(*parts: Any) -> Structure:
        # elements that are tuples come as so many arguments
        return mapped(_row, parts if isinstance(specs, tuple) else parts[0])

    return rows.map(_as_written(plain))


def _row(part: Any) -> Any:
    return part if isinstance(part, tf.RaggedTensor) else tf.identity(part)


def _with_length(elements: Any, stage: Stage) -> Any:
    try:
        length = stage.length() if length_is_certain(stage) else None
    except Endless:
        length = tf.data.INFINITE_CARDINALITY
    except TypeError:
        length = None
    return elements if length is None else elements.apply(tf.data.experimental.assert_cardinality(length))
