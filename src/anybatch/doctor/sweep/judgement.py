"""Which batch size to take, and why."""

from collections.abc import Sequence
from math import isfinite

from anybatch.doctor.sweep.found import Trial

_ALIKE = 1.1


def recommended(trials: Sequence[Trial]) -> tuple[Trial, str]:
    """Return the fastest of the sizes that learnt about as much as the best one, and the reason.

    >>> slow = Trial(16, 100, 1000.0, 10, 0.30, None, None)
    >>> fast = Trial(64, 25, 3000.0, 20, 0.31, None, None)
    >>> bad = Trial(256, 7, 9000.0, 40, 0.60, None, None)
    >>> recommended([slow, fast, bad])[0].batch_size
    64
    """
    usable = [one for one in trials if isfinite(judged_loss(one))]
    if not usable:
        return trials[0], "every size ended in a loss that is no number; a smaller learning rate may help"
    best = min(usable, key=judged_loss)
    # a tenth is less than another seed changes
    alike = [one for one in usable if judged_loss(one) <= judged_loss(best) * _ALIKE]
    chosen = max(alike or [best], key=lambda one: one.samples_per_second)
    return chosen, _reason(chosen, best, trials)


def judged_loss(trial: Trial) -> float:
    """Return the loss that counts: on validation data where there is some."""
    return trial.loss if trial.validation_loss is None else trial.validation_loss


def _reason(chosen: Trial, best: Trial, trials: Sequence[Trial]) -> str:
    kind = "loss" if chosen.validation_loss is None else "validation loss"
    told = f"{kind} {judged_loss(chosen):.4g} after the same number of samples"
    if chosen is not best:
        told += f", about the best ({judged_loss(best):.4g} at {best.batch_size:,})"
    others = [one for one in trials if one is not chosen]
    if others:
        slowest = min(others, key=lambda one: one.samples_per_second)
        told += f", at {chosen.samples_per_second:,.0f} samples/s ({slowest.samples_per_second:,.0f} at "
        told += f"{slowest.batch_size:,})"
    return told
