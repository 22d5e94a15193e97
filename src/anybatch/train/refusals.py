"""What training cannot do, as facts with the way out."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anybatch.errors import AnybatchError
from anybatch.train.exhaustion import is_exhaustion
from anybatch.units import size


class OneSampleDoesNotFit(AnybatchError, MemoryError):
    """Memory ran out with a single sample, or in the update itself, where nothing is left to split."""

    def __init__(
        self, phase: str, held: int | None, limit: int | None, reason: str, needed: int | None = None
    ) -> None:
        super().__init__(phase, held, limit, reason, needed)
        self.phase = phase
        self.held = held
        self.limit = limit
        self.reason = reason
        self.needed = needed
        """What an update of one sample takes at least, weights and slots included."""

    def with_need(self, needed: int | None) -> "OneSampleDoesNotFit":
        """Return the same with what one sample takes at least."""
        return OneSampleDoesNotFit(self.phase, self.held, self.limit, self.reason, needed)

    def __str__(self) -> str:
        held = "" if self.held is None else f"; the process holds {size(self.held, up=True)}"
        limit = "" if self.limit is None else f" of {size(self.limit)}"
        what = "the update alone" if self.phase == "commit" else f"the {self.phase} of one sample"
        need = "" if self.needed is None else f", which takes {size(self.needed, up=True)} at least,"
        return (
            f"{what}{need} does not fit{held}{limit}: {self.reason}; more memory, a smaller model, "
            "`keras.remat` or an optimizer with fewer slots would do"
        )


class UpdateCutShort(AnybatchError, MemoryError):
    """Memory ran out where nobody can say what has changed: the model is neither before nor behind a step."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"memory ran out in the midst of a step, and what it computed cannot be trusted: {self.reason}; "
            "go on from the last state: with checkpoint= the same script does, and `anybatch run` by itself"
        )


class CannotSplit(AnybatchError, ValueError):
    """A model that runs on whole batches only was to run on parts."""

    def __init__(self, what: str, why: str, way_out: str) -> None:
        super().__init__(what, why, way_out)
        self.what = what
        self.why = why
        self.way_out = way_out

    def __str__(self) -> str:
        return f"{self.what} cannot be split: {self.why}; {self.way_out}"


class CannotTry(CannotSplit):
    """A model that was to be tried on a few rows, or built by their shape, did not take them."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why, "whole batches run as they are, where a model takes them")
        self.args = (what, why)

    def __str__(self) -> str:
        return f"{self.what} cannot be tried on a few rows: {self.why}; {self.way_out}"


@contextmanager
def tried_on_few_rows(model: Any) -> Iterator[None]:
    """Raise `CannotTry` for whatever a model raises in the `with` block, but for want of memory."""
    try:
        yield
    except Exception as error:
        if isinstance(error, CannotSplit) or is_exhaustion(error):
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise CannotTry(f"`{model.name}`", ": ".join([type(error).__name__, *lines[:1]])) from error


class OwnAccumulation(AnybatchError, ValueError):
    """The optimizer accumulates gradients by itself."""

    def __init__(self, steps: int, batch_size: int | None) -> None:
        super().__init__(steps, batch_size)
        self.steps = steps
        self.batch_size = batch_size

    def __str__(self) -> str:
        whole = "the whole batch" if self.batch_size is None else f"batch_size={self.steps * self.batch_size}"
        return (
            f"the optimizer has gradient_accumulation_steps={self.steps}, which weighs parts wrongly and "
            f"drives schedules by parts; leave it out and ask for {whole}"
        )


class UnknownBackend(AnybatchError, ValueError):
    """A framework that there is no adapter for."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = known

    def __str__(self) -> str:
        return (
            f"Keras runs on {self.name!r}; fit works on {', '.join(self.known)}: "
            "set KERAS_BACKEND before Keras is imported"
        )
