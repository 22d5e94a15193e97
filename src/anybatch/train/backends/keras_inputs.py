"""What Keras' `fit` takes besides streams, with Keras' own checks and defaults."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
from keras.src.trainers import data_adapters
from keras.src.trainers.data_adapters import array_slicing, data_adapter_utils
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter, can_convert_arrays
from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter
from keras.src.trainers.data_adapters.tf_dataset_adapter import TFDatasetAdapter
from keras.src.utils import rng_utils

from anybatch.stream import from_arrays
from anybatch.train.backends.tensorflow_datasets import DatasetPass
from anybatch.train.inputs import Batches, Source, StreamSource, whole


def source(
    x: Any,
    y: Any,
    sample_weight: Any,
    *,
    batch_size: int | None,
    steps: int | None,
    shuffle: Any,
    class_weight: Any,
) -> Source:
    """Return batches out of arrays, a dataset, a `PyDataset` or a generator; refuses what Keras refuses."""
    adapter = data_adapters.get_data_adapter(
        x,
        y,
        sample_weight=sample_weight,
        batch_size=batch_size,
        steps_per_epoch=steps,
        # others come in an order of their own, which Keras says with a warning even where nobody asked
        shuffle=shuffle and (_has_rows(x) or isinstance(x, keras.utils.PyDataset)),
        class_weight=class_weight,
    )
    if isinstance(adapter, ArrayDataAdapter):
        return _arrays(adapter, shuffle)
    if batch_size is not None:
        raise ValueError(
            f"batch_size={batch_size} was given with x of type {type(x).__name__}, which yields batches "
            "already; leave it out, or batch the data by that number"
        )
    kinds = {TFDatasetAdapter: DatasetSource, PyDatasetAdapter: PyDatasetSource}
    return kinds.get(type(adapter), AdapterSource)(adapter)


def _has_rows(x: Any) -> bool:
    return can_convert_arrays(x)  # type: ignore[no-any-return]


def _arrays(adapter: Any, shuffle: Any) -> Source:
    inputs = array_slicing.convert_to_sliceable(adapter._inputs, target_backend="numpy")  # noqa: SLF001
    flat = keras.tree.flatten(inputs)
    if shuffle == "batch" or not all(_is_plain(one) for one in flat):
        return AdapterSource(adapter)
    arrays = [np.asarray(one.convert_to_numpy(one[slice(None)])) for one in flat if one is not None]
    stream = from_arrays(tuple(arrays))
    if shuffle:
        stream = stream.shuffle(seed=_seed())
    structure = adapter._inputs  # noqa: SLF001
    return StreamSource(stream.batch(adapter.batch_size), lambda columns: _packed(structure, columns))


def _is_plain(sliceable: Any) -> bool:
    if sliceable is None:
        return True
    kind = getattr(sliceable.array, "dtype", None)
    return isinstance(sliceable.array, np.ndarray) and kind is not None and kind.kind in "biuf"


def _packed(structure: Any, columns: Any) -> Any:
    """Return columns in the structure that the user gave them in, lists as tuples, as datasets do."""
    rest = iter(columns)
    filled = keras.tree.map_structure(
        lambda one: None if one is None else next(rest), structure, none_is_leaf=True
    )
    return keras.tree.lists_to_tuples(filled)


def _seed() -> int:
    """Return the seed of the permutation: told by `keras.utils.set_random_seed`, else any."""
    seed = rng_utils.get_random_seed()
    return int(np.random.default_rng().integers(2**31)) if seed is None else int(seed)


class AdapterSource:
    """Batches that come whole, out of one of Keras' adapters."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter

    @property
    def kind(self) -> str:
        """What Keras takes the data for."""
        return type(self._adapter).__name__.removesuffix("Adapter")

    @property
    def num_batches(self) -> int | None:
        return self._adapter.num_batches  # type: ignore[no-any-return]

    @property
    def batch_size(self) -> int | None:
        return self._adapter.batch_size  # type: ignore[no-any-return]

    @property
    def repeatable(self) -> bool:
        return isinstance(self._adapter, TFDatasetAdapter | PyDatasetAdapter | ArrayDataAdapter)

    def open(self, epoch: int, most: int | None) -> Batches:
        for batch in self._elements():
            yield whole(batch)

    def first_rows(self, most: int) -> Any:
        return next(self._elements(), None)

    def _elements(self) -> Iterator[Any]:
        return iter(self._adapter.get_numpy_iterator())

    def began(self) -> None:
        self._adapter.on_epoch_begin()

    def ended(self) -> None:
        self._adapter.on_epoch_end()


class PyDatasetSource(AdapterSource):
    """Batches of a `PyDataset`, which its own threads may make ahead."""

    def first_rows(self, most: int) -> Any:
        # by its number: who asks the threads, and then for something else, leaves them with a batch too few
        if self.num_batches == 0:
            return None
        batch = self._adapter._standardize_batch(self._adapter.py_dataset[0])  # noqa: SLF001
        return next(data_adapter_utils.get_numpy_iterator([batch]))


class DatasetSource(AdapterSource):
    """Batches of a `tf.data.Dataset`, a pass over which can be written down.

    Whoever looks at the first batch begins a pass, and the next one that is opened is that one: a pass more
    would be one more order drawn, and all later epochs would come in another one.
    """

    def __init__(self, adapter: Any) -> None:
        super().__init__(adapter)
        self._first: Any = None
        self._waiting: DatasetPass | None = None

    @property
    def described(self) -> str:
        """What a state of training belongs to."""
        return f"{self.kind} of {self._adapter.get_tf_dataset().element_spec}"

    def first_rows(self, most: int) -> Any:
        if self._first is None:
            self._waiting = DatasetPass(self._adapter.get_tf_dataset())
            self._first = self._waiting.look()
        return self._first

    def begun(self) -> DatasetPass:
        """Begin a pass that will be written down."""
        begun = self._opened()
        begun.remember_beginning()
        return begun

    def open(self, epoch: int, most: int | None) -> Batches:
        return self._opened()

    def _opened(self) -> DatasetPass:
        waiting, self._waiting = self._waiting, None
        return waiting or DatasetPass(self._adapter.get_tf_dataset())

    def began(self) -> None:
        self._first = None
        super().began()


def as_keras_casts(arrays: Any) -> Any:
    """Return a structure whose arrays of floats have the precision that Keras gives to arrays."""
    return keras.tree.map_structure(_cast, arrays, none_is_leaf=False)


def _cast(array: Any) -> Any:
    floats = isinstance(array, np.ndarray) and array.dtype.kind == "f"
    return array.astype(keras.config.floatx(), copy=False) if floats else array


def class_weighted(columns: Any, class_weight: Any) -> Any:
    """Return a part of a stream with its sample weights by class."""
    x, y, weights = keras.utils.unpack_x_y_sample_weight(columns)
    if weights is not None:
        raise ValueError("class_weight and sample weights were both given; weigh by one of them")
    if y is None or keras.tree.is_nested(y):
        raise ValueError("class_weight needs exactly one output with labels")
    return x, y, data_adapter_utils.class_weight_to_sample_weights(y, class_weight)


def validation_split(x: Any, y: Any, sample_weight: Any, fraction: float) -> tuple[Any, Any]:
    """Return the arrays to train on and those at their end to validate on."""
    return array_slicing.train_validation_split((x, y, sample_weight), validation_split=fraction)  # type: ignore[no-any-return]
