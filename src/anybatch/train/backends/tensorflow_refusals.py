"""What cannot run on parts of a batch: known of a model before any row is there, or by what it predicts."""

from typing import Any

import tensorflow as tf

from anybatch.train.backends.tensorflow_terms import overrides
from anybatch.train.refusals import CannotSplit

_OWN_STEPS = {
    "part": ("train_step", "override compute_loss instead, or use anybatch.gradients in it"),
    "test": ("test_step", "make them smaller (in fit by validation_batch_size), or override compute_metrics"),
}
"""The step that is split in some phase, and what to do if it is the model's own."""


def check_splits(model: Any, phase: str) -> None:
    """Refuse to split what runs on whole batches only: in updates ("part"), "test" or "predict"."""
    refusal = against_splitting(model, phase)
    if refusal is not None:
        raise refusal


def against_splitting(model: Any, phase: str) -> CannotSplit | None:
    """Return why a model would be refused parts; None where nothing is known against them."""
    own = _own_step(model, phase)
    # how many rows an update takes is tried, and said with what the model says to fewer
    return own if own is not None or phase == "part" else _fixed_rows(model) or _stateful(model)


def takes_any_rows(model: Any) -> bool:
    """Return whether nothing is known against batches of another number of rows."""
    return _fixed_rows(model) is None and _stateful(model) is None


def check_outputs(model: Any, outputs: Any, rows: int) -> None:
    """Refuse what a model has predicted for a part of so many rows if it is not one prediction for each."""
    for number, leaf in enumerate(tf.nest.flatten(outputs)):
        shape = None if leaf is None else tuple(leaf.shape)
        if shape is not None and shape[:1] not in {(rows,), (None,)}:
            raise CannotSplit(
                f"output {number} of `{model.name}`",
                f"for {rows} rows its shape is {shape}, so it belongs to a batch and not to its rows",
                "leave out micro_batch_size: whole batches run as they are",
            )


def _own_step(model: Any, phase: str) -> CannotSplit | None:
    step, way_out = _OWN_STEPS.get(phase, ("", ""))
    if not step or not overrides(model, step):
        return None
    return CannotSplit(
        f"{type(model).__name__}.{step}",
        "it is the model's own, and what it does with a batch cannot be seen from outside",
        f"whole batches run as they are; {way_out}",
    )


def _fixed_rows(model: Any) -> CannotSplit | None:
    # a model that is built by its data knows no inputs yet
    shapes = [one.shape for one in getattr(model, "inputs", None) or []]
    rows = next((shape[0] for shape in shapes if len(shape) and shape[0] is not None), None)
    if rows is None:
        return None
    return CannotSplit(
        f"`{model.name}`",
        f"its input takes batches of {rows} rows and no others",
        f"leave out micro_batch_size, or build it with keras.Input(shape={shapes[0][1:]})",
    )


def _stateful(model: Any) -> CannotSplit | None:
    layers = [layer for layer in model._flatten_layers() if getattr(layer, "stateful", False)]  # noqa: SLF001
    if not layers:
        return None
    return CannotSplit(
        f"`{model.name}`",
        f"`{layers[0].name}` is stateful: a part would go on where the part before has ended",
        "leave out micro_batch_size: whole batches run as they are",
    )
