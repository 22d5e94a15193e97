"""What a Keras model shows of itself, read from its attributes: no framework is imported for it."""

from typing import Any

from anybatch.doctor.measure.facts import ModelFacts


def model_facts(model: Any) -> ModelFacts:
    """Return the layers, shapes and loss of a built model; what it does not show is left out."""
    kinds = frozenset(kind.__name__ for layer in _flattened(model) for kind in type(layer).__mro__)
    output = _shape(getattr(model, "outputs", None))
    return ModelFacts(
        kinds=kinds,
        inputs=tuple(tuple(one.shape[1:]) for one in getattr(model, "inputs", None) or ()),
        input_names=tuple(str(getattr(one, "name", "")) for one in getattr(model, "inputs", None) or ()),
        units=output[-1] if output else None,
        loss=_loss(model),
    )


def _flattened(model: Any) -> list[Any]:
    found = []
    for layer in getattr(model, "layers", ()):
        found += _flattened(layer) or [layer]
    return found


def _shape(tensors: Any) -> tuple[int | None, ...] | None:
    return tuple(tensors[0].shape[1:]) if tensors and len(tensors) == 1 else None


def _loss(model: Any) -> str:
    loss = getattr(model, "loss", None)
    if loss is None or isinstance(loss, str):
        return loss or ""
    return str(getattr(loss, "name", getattr(loss, "__name__", type(loss).__name__)))
