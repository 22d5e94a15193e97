from hypothesis import given
from hypothesis import strategies as st

from anybatch.memory import PeakModel, Peaks, Probe, fitted

sizes = st.integers(1, 10_000)
limits = st.integers(1, 10**12)
models = st.builds(PeakModel, st.floats(0, 1e11), st.floats(0, 1e8))


@given(models, limits, sizes)
def test_the_largest_size_under_a_limit_fits_and_the_next_does_not(model, limit, ceiling):
    found = model.largest_under(limit, ceiling=ceiling)
    assert found == 0 or model.predicted_peak_bytes(found) <= limit
    assert found == ceiling or model.predicted_peak_bytes(found + 1) > limit


@given(models, limits, sizes)
def test_after_a_failure_the_same_size_is_never_chosen_again(model, limit, failed_at):
    corrected = model.scaled_to_fail_at(failed_at, limit)
    assert corrected.largest_under(limit, ceiling=failed_at) < failed_at
    assert corrected.predicted_peak_bytes(1) >= model.predicted_peak_bytes(1)


@given(models, st.lists(sizes, min_size=2, unique=True))
def test_probes_on_a_line_give_that_line(model, samples):
    found = fitted([Probe(one, model.predicted_peak_bytes(one)) for one in samples])
    for one in (min(samples), max(samples), 2 * max(samples)):
        # rounding up by a byte per probe tilts the line by as much
        slack = 2 + one * 2 / (max(samples) - min(samples))
        assert abs(found.predicted_peak_bytes(one) - model.predicted_peak_bytes(one)) <= slack


@given(st.lists(st.builds(Probe, sizes, limits), min_size=1))
def test_no_probe_lies_above_the_fitted_line(probes):
    model = fitted(probes)
    assert model.bytes_per_sample >= 0
    for probe in probes:
        # floats have 53 bits
        assert model.predicted_peak_bytes(probe.samples) >= probe.peak_bytes * (1 - 1e-9)


def test_the_whole_batch_is_one_part_where_it_fits():
    peaks = Peaks(whole=PeakModel(100, 10), split=PeakModel(200, 10))
    assert peaks.part_under(1100, 100) == 100
    assert peaks.predicted_peak_bytes(100, 100) == 1100


def test_several_parts_pay_for_their_sums():
    peaks = Peaks(whole=PeakModel(100, 10), split=PeakModel(200, 10))
    assert peaks.part_under(1099, 100) == 89
    assert peaks.predicted_peak_bytes(89, 100) == 1090


def test_where_the_sums_cost_more_than_a_part_saves_nothing_fits():
    peaks = Peaks(whole=PeakModel(100, 10), split=PeakModel(5000, 10))
    assert peaks.part_under(1099, 100) == 0


def test_what_parts_take_however_small_they_are_is_counted():
    peaks = Peaks(whole=PeakModel(100, 10), split=PeakModel(200, 10), least_split_bytes=500)
    assert peaks.predicted_peak_bytes(4, 64) == 500
    assert peaks.predicted_peak_bytes(40, 64) == 600
    assert peaks.predicted_peak_bytes(64, 64) == 740
    assert (peaks.part_under(499, 64), peaks.part_under(600, 64), peaks.part_under(740, 64)) == (0, 40, 64)
