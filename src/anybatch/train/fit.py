"""`fit`, `evaluate` and `predict`: Keras' own, with batches split so that they fit."""

import os
from typing import Any

from anybatch.stream import Stream
from anybatch.train.backends import backend_of
from anybatch.train.company import Alone, company_of
from anybatch.train.epochs import Epochs
from anybatch.train.exhaustion import is_exhaustion
from anybatch.train.gauge import Gauge
from anybatch.train.inputs import Source, StreamSource
from anybatch.train.naming import naming_columns
from anybatch.train.plan import first_plan, limit_of, memories_of, spare_bytes
from anybatch.train.plan_forward import check_batches, rows_at_once
from anybatch.train.refusals import OneSampleDoesNotFit
from anybatch.train.routes import planned
from anybatch.train.session import Session

DEFAULT_BATCH_SIZE = 32
"""Keras' own."""


@naming_columns
def fit(
    model: Any,
    x: Any = None,
    y: Any = None,
    *,
    batch_size: int | None = None,
    memory: str | int | None = None,
    device_memory: str | int | None = None,
    micro_batch_size: int | str = "auto",
    epochs: int = 1,
    verbose: Any = "auto",
    callbacks: Any = None,
    validation_split: float = 0.0,
    validation_data: Any = None,
    shuffle: Any = True,
    class_weight: Any = None,
    sample_weight: Any = None,
    initial_epoch: int = 0,
    steps_per_epoch: int | None = None,
    validation_steps: int | None = None,
    validation_batch_size: int | None = None,
    validation_freq: Any = 1,
    checkpoint: Any = None,
    resume: bool = True,
) -> Any:
    """Train a compiled Keras model, and return its `History` with `.plan` and `.events`.

    One update is made of `batch_size` samples (or of what the data's own batches hold), whatever fits into
    memory at once: a batch is split into parts whose gradients add up to that of the whole batch. Of its
    arguments these are not those of `model.fit`:

    - `memory`: all that the process may hold (`"2GiB"`, or bytes), interpreter, arrays and streams included;
      default: what container and machine allow. More than that before training is an error.
    - `device_memory`: the same of an accelerator's memory.
    - `micro_batch_size`: how many samples a part has at first; running out of memory still makes it smaller.
      `"auto"` plans it by `memory`.
    - `checkpoint`: a folder for the state of the run. The same call continues a run that was stopped, returns
      a finished one at once, and refuses a changed model, data or batch by name.
    - `resume=False`: start anew, whatever the folder holds.

    >>> import keras, numpy as np
    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> history = fit(model, np.ones((8, 3)), np.ones((8, 1)), batch_size=8, micro_batch_size=3, verbose=0)
    >>> print(history.plan)
    batch           8 = 3 x up to 3
    predicted peak  unknown
    limit           unknown
    exact           yes
    """
    backend = backend_of(model)
    backend.check_training(model, batch_size)
    if validation_split and validation_data is None:
        (x, y, sample_weight), validation_data = backend.validation_split(
            x, y, sample_weight, validation_split
        )
    given = opened(
        backend,
        x,
        y,
        sample_weight,
        batch_size=batch_size,
        steps=steps_per_epoch,
        shuffle=shuffle,
        class_weight=class_weight,
    )
    company = company_of(model)
    source = company.source(given)
    keeper = company.keeper(model, source, checkpoint, resume=resume, epochs=epochs)
    part = keeper.part_to_begin_with(micro_batch_size, limit_of(memory))
    limits = (part, memory, device_memory)
    plan = planned(given, *limits) if keeper.finished else keeper.bounded(first_plan(model, given, *limits))
    if isinstance(keeper.source, StreamSource):
        keeper.source.swept_bytes = spare_bytes(plan) // 2
    session = company.session(model, plan.micro_batch_size, source)
    callbacks, verbose = company.watchers(callbacks, verbose)
    gauge = Gauge(
        memories_of(model, memory, device_memory),
        source.batch_size or plan.batch_size,
        lambda: session.transaction.size.now,
    )
    training = keeper.epochs(steps_per_epoch)
    validation = _Validation(
        session,
        company,
        validation_data,
        batch_size=validation_batch_size or batch_size,
        steps=validation_steps,
        frequency=validation_freq,
    )
    callbacks = backend.callback_list(
        model,
        callbacks if verbose == 0 else backend.with_progress(callbacks, gauge),
        add_history=True,
        verbose=verbose,
        epochs=epochs,
        steps=training.length,
    )
    backend.show(gauge, callbacks)
    callbacks = keeper.watching(callbacks, session)
    wanted = range(initial_epoch, epochs)
    try:
        _train(
            session, training, wanted, callbacks, source.batch_size, validation=validation, company=company
        )
    except OneSampleDoesNotFit as error:
        raise error.with_need(_least_bytes(model, given)) from None
    model.history.plan, model.history.events = session.told(plan), session.events
    return model.history


def _least_bytes(model: Any, source: Source) -> int | None:
    """Return what an update of one sample takes at least; None where that cannot be found out any more."""
    backend = backend_of(model)
    try:
        part = source.first_rows(1) if source.repeatable else None
        return None if part is None else backend.sizes(model, part).least_bytes
    except Exception as error:
        if is_exhaustion(error):
            return None
        raise


def _train(
    session: Session,
    training: Epochs,
    wanted: range,
    callbacks: Any,
    batch_size: int | None,
    *,
    validation: "_Validation",
    company: Alone,
) -> None:
    """Train the epochs that are wanted and not done yet, and call callbacks as Keras does."""
    model, logs = session.model, None
    model.stop_training = False
    callbacks.on_train_begin()
    # the state of a run that goes on comes back when training begins, and says where
    for epoch in range(model._initial_epoch or wanted.start, wanted.stop):  # noqa: SLF001
        model.reset_metrics()
        callbacks.on_epoch_begin(epoch)
        logs = session.train(training, epoch, callbacks, batch_size)
        logs.update(validation.logs(epoch, callbacks))
        callbacks.on_epoch_end(epoch, logs)
        # of several workers one may have been told, and the state has to say so for all
        model.stop_training = company.agree(model.stop_training)
        if model.stop_training:
            break
    callbacks.on_last_update()
    if wanted.stop > 0:
        session.backend.finalize(model)
    callbacks.on_train_end(logs=logs)


class _Validation:
    """What is evaluated behind an epoch: nothing, if nothing was given for it."""

    def __init__(
        self,
        session: Session,
        company: Alone,
        given: Any,
        *,
        batch_size: int | None,
        steps: int | None,
        frequency: Any,
    ) -> None:
        self._session = session
        self._frequency = frequency
        self._source: Source | None = None
        if given is not None:
            x, y, sample_weight = session.backend.unpacked(given)
            size = _unless_batched(x, batch_size)
            there = opened(session.backend, x, y, sample_weight, batch_size=size, steps=steps)
            check_batches(session.model, there, session.transaction.size.now, "test")
            self._source = company.source(there)
            session.tests_on(self._source)
            self._steps = steps

    def logs(self, epoch: int, callbacks: Any) -> dict[str, Any]:
        """Evaluate if that is due behind this epoch, and return the logs."""
        if self._source is None or not self._session.backend.validates(
            self._session.model, epoch, self._frequency
        ):
            return {}
        # from the beginning every time, or epochs could not be compared
        epochs = Epochs(self._source, self._steps)
        found = self._session.test(epochs, callbacks, self._source.batch_size)
        return {f"val_{name}": value for name, value in found.items()}


def _unless_batched(x: Any, batch_size: int | None) -> int | None:
    """Return the batch size for data that has none of its own."""
    return (
        None
        if hasattr(x, "__iter__") and not hasattr(x, "shape") and not isinstance(x, list | tuple | dict)
        else batch_size
    )


@naming_columns
def evaluate(
    model: Any,
    x: Any = None,
    y: Any = None,
    *,
    batch_size: int | None = None,
    memory: str | int | None = None,
    device_memory: str | int | None = None,
    micro_batch_size: int | str = "auto",
    verbose: Any = "auto",
    sample_weight: Any = None,
    steps: int | None = None,
    callbacks: Any = None,
    return_dict: bool = False,
) -> Any:
    """Return loss and metrics of a compiled model as `model.evaluate`, under the same limits as `fit`.

    >>> import keras, numpy as np
    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
    >>> model.compile("sgd", "mse")
    >>> evaluate(model, np.ones((8, 3)), np.ones((8, 1)), micro_batch_size=3, verbose=0)
    4.0
    """
    backend = backend_of(model)
    backend.check_model(model)
    source = opened(backend, x, y, sample_weight, batch_size=batch_size, steps=steps)
    rows = rows_at_once(model, source, micro_batch_size, memory, device_memory, phase="test")
    session = Session(model, rows, source)
    epochs = Epochs(source, steps)
    callbacks = backend.callback_list(
        model, callbacks, add_progbar=verbose != 0, verbose=verbose, epochs=1, steps=epochs.length
    )
    logs = session.test(epochs, callbacks, source.batch_size)
    return logs if return_dict else backend.flat(model, logs)


@naming_columns
def predict(
    model: Any,
    x: Any,
    *,
    batch_size: int | None = None,
    memory: str | int | None = None,
    device_memory: str | int | None = None,
    micro_batch_size: int | str = "auto",
    verbose: Any = "auto",
    steps: int | None = None,
    callbacks: Any = None,
) -> Any:
    """Return what a model predicts, as `model.predict`, under the same limits as `fit`.

    >>> import keras, numpy as np
    >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])
    >>> predict(model, np.ones((2, 3)), micro_batch_size=1, verbose=0).tolist()
    [[3.0], [3.0]]
    """
    backend = backend_of(model)
    backend.accept_uncompiled(model)
    source = opened(backend, x, None, None, batch_size=batch_size, steps=steps)
    rows = rows_at_once(model, source, micro_batch_size, memory, device_memory, phase="predict")
    session = Session(model, rows)
    epochs = Epochs(source, steps)
    callbacks = backend.callback_list(
        model, callbacks, add_progbar=verbose != 0, verbose=verbose, epochs=1, steps=epochs.length
    )
    return session.predict(epochs, callbacks)


def opened(
    backend: Any,
    x: Any,
    y: Any,
    sample_weight: Any,
    *,
    batch_size: int | None,
    steps: int | None,
    shuffle: Any = False,
    class_weight: Any = None,
) -> Source:
    """Return the batches of whatever a user passes as data."""
    if x is None:
        raise ValueError("there is no data: x is None; pass arrays, a stream or a tf.data.Dataset")
    if isinstance(x, str | os.PathLike):
        raise ValueError(f"x is the path `{os.fspath(x)}`; ab.read(path, features) makes a stream of it")
    if not isinstance(x, Stream):
        return backend.source(  # type: ignore[no-any-return]
            x,
            y,
            sample_weight,
            batch_size=batch_size,
            steps=steps,
            shuffle=shuffle,
            class_weight=class_weight,
        )
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        if given is not None:
            raise ValueError(f"{name} was given with a stream; as_supervised says which columns are meant")
    batched = x._stage.batched  # noqa: SLF001
    if batched and batch_size is not None:
        raise ValueError(
            f"batch_size={batch_size} was given with a stream that has batches; leave out one of them"
        )
    stream = x if batched else x.batch(batch_size or DEFAULT_BATCH_SIZE)
    if class_weight is None:
        return StreamSource(stream)
    return StreamSource(stream, lambda columns: backend.class_weighted(columns, class_weight))
