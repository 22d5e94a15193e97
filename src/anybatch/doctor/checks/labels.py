"""Which labels a model is given, where functions stand between the records and the model."""

from anybatch.doctor.measure import Facts


def trained_on(facts: Facts) -> tuple[int, ...]:
    """Return the labels of the first batch that a stream gives; none if it gives none that can be told."""
    return (facts.training.labels or ()) if facts.training else ()
