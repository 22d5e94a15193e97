"""The samples of one attempt, however long it takes: a few hundred, evenly spread, with every peak."""

from dataclasses import replace

from anybatch.supervise.observe import Sample

MOST_SAMPLES = 256


class Trail:
    """Keeps the highest sample of every stretch; stretches grow as the attempt does."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.peak_bytes = 0
        self._per_stretch = 1
        self._in_stretch = 0

    def add(self, sample: Sample) -> None:
        """Remember one sample, or that it was no higher than its neighbour."""
        self.peak_bytes = max(self.peak_bytes, sample.held_bytes)
        if self._in_stretch % self._per_stretch == 0:
            self._make_room()
            self.samples.append(sample)
        else:
            self.samples[-1] = _higher(self.samples[-1], sample)
        self._in_stretch += 1

    def _make_room(self) -> None:
        if len(self.samples) < MOST_SAMPLES:
            return
        pairs = zip(self.samples[::2], self.samples[1::2], strict=True)
        self.samples = [_higher(first, second) for first, second in pairs]
        self._per_stretch *= 2
        self._in_stretch = 0


def _higher(first: Sample, second: Sample) -> Sample:
    higher = max(first, second, key=lambda sample: sample.held_bytes)
    return replace(higher, pressure=max(first.pressure, second.pressure))
