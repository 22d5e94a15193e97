"""In whose company `fit` trains: alone, or as one of several workers. What differs lies here."""

from typing import Any

from anybatch.train.checkpoint_keeper import Keeper
from anybatch.train.inputs import Source
from anybatch.train.session import Session
from anybatch.train.workers import membership


class Alone:
    """One process trains on every row."""

    def source(self, source: Source) -> Source:
        """Return the rows of every batch that are this worker's."""
        return source

    def keeper(self, model: Any, source: Source, folder: Any, *, resume: bool, epochs: int) -> Keeper:
        """Return who keeps the state."""
        return Keeper(model, source, folder, resume=resume, epochs=epochs)

    def session(self, model: Any, wanted: int | None, source: Source) -> Session:
        """Return what batches go through."""
        return Session(model, wanted, source)

    def watchers(self, callbacks: Any, verbose: Any) -> tuple[Any, Any]:
        """Return the callbacks that this worker calls, and how much it prints."""
        return callbacks, verbose

    def agree(self, stop: bool) -> bool:
        """Return whether somebody wants to stop."""
        return stop


def company_of(model: Any) -> Alone:
    """Return whom a model is trained with: `TF_CONFIG` tells."""
    if membership() is None:
        return Alone()
    from anybatch.train.together import together

    return together(model)
