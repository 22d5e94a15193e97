"""Keras on TensorFlow: everything that `fit` asks of a framework."""

from typing import Any

import keras
from keras.src.utils import python_utils

from anybatch.train.backends.keras_inputs import as_keras_casts, class_weighted, source, validation_split
from anybatch.train.backends.tensorflow_board import MemoryLog, show
from anybatch.train.backends.tensorflow_build import build
from anybatch.train.backends.tensorflow_compare import compared
from anybatch.train.backends.tensorflow_devices import (
    device_held_bytes,
    device_limit_bytes,
    device_watch,
    devices_with_memory,
    host_pool,
    peaks_depend_on,
)
from anybatch.train.backends.tensorflow_feed import joined, row_count, rows_between, tensors
from anybatch.train.backends.tensorflow_findings import examined
from anybatch.train.backends.tensorflow_products import have_failures_told
from anybatch.train.backends.tensorflow_progress import with_progress
from anybatch.train.backends.tensorflow_refusals import against_splitting, check_outputs, check_splits
from anybatch.train.backends.tensorflow_sizes import (
    largest_variable_bytes,
    sizes,
    sums_grow,
    variables_bytes,
)
from anybatch.train.backends.tensorflow_state import assign_pieces
from anybatch.train.backends.tensorflow_steps import Steps
from anybatch.train.backends.tensorflow_tape import LossParts
from anybatch.train.refusals import OwnAccumulation

__all__ = [
    "LossParts",
    "MemoryLog",
    "Steps",
    "against_splitting",
    "as_keras_casts",
    "assign_pieces",
    "build",
    "callback_list",
    "check_model",
    "check_outputs",
    "check_splits",
    "check_training",
    "class_weighted",
    "compared",
    "device_held_bytes",
    "device_limit_bytes",
    "device_watch",
    "devices_with_memory",
    "epoch_logs",
    "examined",
    "finalize",
    "flat",
    "host_pool",
    "identity",
    "is_weighted",
    "joined",
    "largest_variable_bytes",
    "metrics_so_far",
    "numbers",
    "peaks_depend_on",
    "row_count",
    "rows_between",
    "show",
    "sizes",
    "source",
    "sums_grow",
    "tensors",
    "unpacked",
    "validates",
    "validation_split",
    "variables_bytes",
    "with_progress",
]

have_failures_told()


def check_training(model: Any, batch_size: int | None) -> None:
    """Refuse what cannot be trained, before anything is read."""
    check_model(model)
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    steps = getattr(optimizer, "gradient_accumulation_steps", None)
    if steps:
        raise OwnAccumulation(steps, batch_size)


def check_model(model: Any) -> None:
    """Refuse what can be neither trained nor evaluated, before anything is read."""
    model._assert_compile_called()  # noqa: SLF001
    replicas = model.distribute_strategy.num_replicas_in_sync
    if replicas > 1:
        raise ValueError(
            f"the model belongs to a tf.distribute strategy of {replicas} replicas, which cuts batches "
            "itself; build it outside of the strategy's scope"
        )


def accept_uncompiled(model: Any) -> None:
    """Let a model predict that was never compiled, as Keras does."""
    if not hasattr(model, "optimizer"):
        model.optimizer = None


def callback_list(model: Any, callbacks: Any, **options: Any) -> Any:
    """Return Keras' own list of callbacks, or the one given."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        return callbacks
    return keras.callbacks.CallbackList(callbacks, model=model, **options)


def identity(model: Any) -> tuple[Any, ...]:
    """Return what traced steps depend on, what can be trained last: another one means tracing anew."""
    # a model that only predicts need not be compiled
    parts = ("optimizer", "_compile_loss", "_compile_metrics", "_loss_tracker") if model.compiled else ()
    compiled = [getattr(model, part) for part in parts]
    variables = tuple(id(variable) for variable in model.trainable_variables)
    return (*map(id, compiled), model.run_eagerly, model.jit_compile, variables)


def epoch_logs(model: Any, logs: Any) -> Any:
    """Return the model's metrics, or the logs where a step of its own returned something else."""
    return dict(model._get_metrics_result_or_logs(logs))  # noqa: SLF001


def metrics_so_far(model: Any) -> Any:
    """Return what the model's metrics have counted, as logs."""
    return model.get_metrics_result()


def validates(model: Any, epoch: int, frequency: Any) -> bool:
    """Return whether an epoch is followed by validation."""
    return bool(model._should_eval(epoch, frequency))  # noqa: SLF001


def flat(model: Any, logs: Any) -> Any:
    """Return logs as `evaluate` returns them: a number, or a list in the order of the metrics."""
    return model._flatten_metrics_in_order(logs)  # noqa: SLF001


def unpacked(given: Any) -> tuple[Any, Any, Any]:
    """Return (x, y, sample_weight) of what a user gave as one."""
    return keras.utils.unpack_x_y_sample_weight(given)  # type: ignore[no-any-return]


def is_weighted(part: Any) -> bool:
    """Return whether rows come with sample weights."""
    return unpacked(part)[2] is not None


def finalize(model: Any) -> None:
    """Do what an optimizer does once, at the end: weights become their averages."""
    if isinstance(model.optimizer, keras.optimizers.Optimizer):
        model.optimizer.finalize_variable_values(model.trainable_weights)


def numbers(logs: Any) -> Any:
    """Return logs as plain numbers."""
    return python_utils.pythonify_logs(logs)
