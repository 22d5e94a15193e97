"""What a predicted peak is made of: plain numbers in, plain rows out."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MOST_LAYERS = 5
"""Layers that get a row of their own, the largest."""

MEASURED, COUNTED, ESTIMATED, REST = "measured", "counted", "estimated", "the rest"


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a framework tells of the bytes of one model, without running it.

    `layers` come in the order of their calls, each with the bytes of its outputs per sample. Tables of
    embeddings have no dense gradient: `slices_bytes` is what one sample adds to theirs.
    """

    weights_bytes: int = 0
    slots_bytes: int = 0
    gradients_bytes: int = 0
    slices_bytes: int = 0
    sample_bytes: int = 0
    layers: tuple[tuple[str, int], ...] = ()
    full_precision: bool = True

    @property
    def activations_bytes(self) -> int:
        """The outputs of all layers for one sample."""
        return sum(n_bytes for _, n_bytes in self.layers)

    @property
    def least_bytes(self) -> int:
        """What an update of one sample cannot do without: what layers put out is kept for the way back."""
        weights = self.weights_bytes + self.slots_bytes + self.gradients_bytes
        return weights + self.slices_bytes + self.sample_bytes + self.activations_bytes


@dataclass(frozen=True, slots=True)
class Use:
    """One row: what takes so many bytes at the peak, and how that is known."""

    name: str
    n_bytes: int
    known: str


@dataclass(frozen=True, slots=True)
class Peak:
    """A predicted peak, and what is known of the update that has it.

    `there_bytes` is what weights and slots took already when `held_bytes` was measured.
    """

    n_bytes: int
    held_bytes: int
    there_bytes: int
    batch_size: int
    part: int
    growing_bytes: int = 0
    """What of it was seen to grow with the samples of a part."""
    stream_bytes: int | None = None
    """What the stream may hold; None if the data comes from elsewhere."""

    @property
    def parts(self) -> int:
        return -(-self.batch_size // self.part)


@dataclass(frozen=True, slots=True)
class Account:
    """Every byte of a peak in one row or another: the rows come to the peak, whatever was estimated."""

    certain: tuple[Use, ...]
    estimated: tuple[Use, ...]
    activations: tuple[Use, ...]
    workspace_bytes: int
    rest_bytes: int

    @property
    def activations_bytes(self) -> int:
        return _together(self.activations)

    @property
    def rows(self) -> tuple[Use, ...]:
        workspace = Use("workspace of a part", self.workspace_bytes, REST)
        rest = Use("traced steps, unaccounted", self.rest_bytes, REST)
        shown = (*self.certain, *self.estimated, *_largest(self.activations), workspace, rest)
        return tuple(use for use in shown if use.n_bytes)


def accounted(peak: Peak, sizes: Sizes) -> Account:
    """Return what a peak is made of.

    What is held for sure comes first. The rest is shared by estimates: what grows with a part and nobody
    claims is its workspace. If they claim more, because not all of it is alive at once, each is scaled down
    alike.

    >>> sizes = Sizes(weights_bytes=40, gradients_bytes=40, layers=(("wide", 30), ("narrow", 5)))
    >>> peak = Peak(n_bytes=600, held_bytes=140, there_bytes=40, batch_size=16, part=8, growing_bytes=310)
    >>> [(use.name, use.n_bytes) for use in accounted(peak, sizes).rows]
    [('process before', 100), ('weights', 40), ('sums of gradients', 40), ('gradients', 40),
     ('activations of wide', 240), ('activations of narrow', 40), ('workspace of a part', 30),
     ('traced steps, unaccounted', 70)]
    """
    certain = tuple(_certain(peak, sizes))
    left_bytes = peak.n_bytes - _together(certain)
    gradients = Use("gradients", sizes.gradients_bytes + sizes.slices_bytes * peak.part, ESTIMATED)
    data, activations = list(_data(peak, sizes)), list(_activations(peak, sizes))
    claimed = _together([gradients, *data, *activations])
    share = min(1.0, max(0, left_bytes) / claimed) if claimed else 1.0
    estimated, layers = _scaled([gradients, *data], share), _scaled(activations, share)
    rest_bytes = left_bytes - _together([*estimated, *layers])
    unclaimed = peak.growing_bytes - _together([*estimated[1:], *layers])
    workspace_bytes = max(0, min(unclaimed, rest_bytes))
    return Account(certain, estimated, layers, workspace_bytes, rest_bytes - workspace_bytes)


def _together(uses: Iterable[Use]) -> int:
    return sum(use.n_bytes for use in uses)


def _certain(peak: Peak, sizes: Sizes) -> Iterator[Use]:
    """Yield what lives through the whole update."""
    yield Use("process before", peak.held_bytes - peak.there_bytes, MEASURED)
    yield Use("weights", sizes.weights_bytes, COUNTED)
    yield Use("optimizer slots", sizes.slots_bytes, COUNTED)
    if peak.parts > 1:
        # slices are kept until the update is made, so those of the whole batch
        sums = sizes.gradients_bytes + sizes.slices_bytes * peak.batch_size
        yield Use("sums of gradients", sums, COUNTED)


def _data(peak: Peak, sizes: Sizes) -> Iterator[Use]:
    yield Use("samples of a part", sizes.sample_bytes * peak.part, ESTIMATED)
    if peak.stream_bytes is not None:
        # one part is made ready while the other is trained on
        yield Use("stream", min(peak.stream_bytes, sizes.sample_bytes * peak.part), ESTIMATED)


def _activations(peak: Peak, sizes: Sizes) -> Iterator[Use]:
    for name, n_bytes in sizes.layers:
        yield Use(f"activations of {name}", n_bytes * peak.part, ESTIMATED)


def _scaled(uses: list[Use], share: float) -> tuple[Use, ...]:
    known = ESTIMATED if share == 1 else f"{ESTIMATED}, {share:.0%} of what it may take"
    return tuple(Use(use.name, int(use.n_bytes * share), known) for use in uses)


def _largest(activations: tuple[Use, ...]) -> Iterator[Use]:
    """Yield the largest layers, and the others in one row."""
    by_size = sorted(activations, key=lambda use: use.n_bytes, reverse=True)
    yield from by_size[:MOST_LAYERS]
    others = by_size[MOST_LAYERS:]
    if others:
        yield Use(f"activations of {len(others)} other layers", _together(others), others[0].known)
