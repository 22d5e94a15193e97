"""`gradients`: exact accumulation for hand-written loops."""

from collections.abc import Callable, Sequence
from typing import Any

from anybatch.train.backends import loaded_backend
from anybatch.train.routes import wanted_part
from anybatch.train.transaction import Columns, PartSize, in_pieces


def gradients(
    loss_fn: Callable[..., Any],
    variables: Any,
    batch: Any,
    *,
    reduction: str,
    micro_batch_size: int | str = "auto",
) -> tuple[list[Any], Any]:
    """Return `(gradients, loss)` of a whole batch, computed in parts of `micro_batch_size` rows.

    `loss_fn(*part)` returns one number for some rows of the batch, and `reduction` says which: their "mean"
    or their "sum"; `variables` is a list. With "auto" the batch is tried whole first; where memory runs out,
    what is left goes on in smaller parts. Layers that mix samples, and random ones, see parts alone.

    `loss_fn` is traced, as `tf.function` does it: numbers and lists of Python that it finds around it are
    those of the first call with parts of a shape. What changes from call to call belongs into the batch, or
    into a `tf.Variable`.

    >>> import keras, tensorflow as tf
    >>> weight = keras.Variable(2.0)
    >>> x = tf.constant([1.0, 2.0, 6.0])
    >>> def loss(x):
    ...     return tf.reduce_mean(weight.value * x)
    >>> [gradient], value = gradients(loss, [weight], x, reduction="mean", micro_batch_size=2)
    >>> float(gradient), float(value)
    (3.0, 6.0)
    """
    if reduction not in {"mean", "sum"}:
        raise ValueError(f'reduction={reduction!r}; the loss of several rows is their "mean" or their "sum"')
    backend = loaded_backend()
    batch = batch if isinstance(batch, tuple) else tuple(batch) if isinstance(batch, list) else (batch,)
    if not isinstance(variables, Sequence) or not variables:
        raise TypeError(f"variables is a {type(variables).__name__}; give a list of at least one variable")
    rows = backend.row_count(batch)
    size = PartSize(wanted_part(micro_batch_size, rows))
    parts = backend.LossParts(loss_fn, list(variables))
    columns = Columns(backend.row_count, backend.rows_between, backend.tensors)

    def run(part: Any, n: int) -> None:
        parts.add(columns.tensors(part), n / rows if reduction == "mean" else 1.0)

    in_pieces(batch, run, columns, size, "part")
    return parts.result()  # type: ignore[no-any-return]
