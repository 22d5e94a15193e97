"""What trials found: plain values, imported without what trains."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """What one batch size did."""

    batch_size: int
    updates: int
    samples_per_second: float
    peak_bytes: int
    """What training took above what the process held before."""
    loss: float
    """On the same records of the training data, after the same number of samples."""
    validation_loss: float | None
    noise_scale: float | None
    """The batch at which a gradient is half noise, with the weights that training at this size led to."""


@dataclass(frozen=True, slots=True)
class MemoryTrial:
    """What one way to feed a model took for so many samples."""

    way: str
    samples: int
    peak_bytes: int
    """What one epoch took above what the process held before, data included."""
