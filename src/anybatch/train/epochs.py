"""Which batches belong to which epoch, as Keras counts them."""

import warnings
from collections.abc import Iterator

from anybatch.errors import AnybatchWarning
from anybatch.train.inputs import Batches, Part, Source

_RAN_OUT = (
    "the data ran out after {seen} of {wanted} steps; give steps_per_epoch * epochs batches, "
    "or let the data repeat"
)


class Epochs:
    """Opens a source once per epoch; with `steps`, goes on where the last epoch stopped."""

    def __init__(self, source: Source, steps: int | None) -> None:
        self._source = source
        # none is no number of steps: as Keras takes it
        self._steps = steps or None
        self._open: Batches | None = None
        self._passes = 0
        self._known = source.num_batches
        self.over = False
        """Whether the last epoch has had all its batches, as far as that was noticed."""

    @property
    def begun(self) -> bool:
        """Whether some batches of the next epoch were made before, by another process."""
        return False

    @property
    def length(self) -> int | None:
        """How many batches an epoch has, as far as that is known."""
        return self._steps or self._known

    def batches(self, epoch: int, most: int | None) -> Iterator[Iterator[Part]]:
        """Yield the batches of one epoch."""
        return self._batches(0, epoch, most)

    def _batches(self, done: int, epoch: int, most: int | None) -> Iterator[Iterator[Part]]:
        self.over = False
        self._source.began()
        if self._steps is None:
            seen = 0
            for batch in self._source.open(epoch, most):
                yield batch
                seen += 1
            self._known = self._known or seen
        else:
            yield from self._some(done, self._steps, most)
        self.over = True
        self._source.ended()

    def _some(self, done: int, steps: int, most: int | None) -> Iterator[Iterator[Part]]:
        for seen in range(done, steps):
            batch = self._next(most)
            if batch is None and not seen:
                # the last epoch ended where the data does
                batch = self._next(most)
            if batch is None:
                warnings.warn(_RAN_OUT.format(seen=seen, wanted=steps), AnybatchWarning, stacklevel=2)
                return
            yield batch

    def _next(self, most: int | None) -> Iterator[Part] | None:
        """Return the next batch of the pass, or of a new one if none is open; None where it ends."""
        if self._open is None:
            self._open = self._source.open(self._passes, most)
            self._passes += 1
        batch = next(self._open, None)
        if batch is None:
            self._open = None
        return batch
