"""Planted faults are found with their code and place; clean data raises nothing above a note."""

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest

import anybatch as ab
from anybatch.doctor import diagnose
from tests.doctor.data_sets import CLEAN, FAULTS, SHAPES, pictures
from tests.shard_files import framed

RANKS = ["note", "warning", "error"]


def diagnosed(plan, folder):
    return diagnose(plan.write(folder), **plan.asked)


def of_code(found, code):
    return [finding for finding in found.findings if finding.code == code]


def above_note(found):
    return {finding.code for finding in found.findings if finding.severity != "note"}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_with_its_code_and_place(tmp_path, name):
    fault = FAULTS[name]
    (finding,) = of_code(diagnosed(fault.plant(pictures()), tmp_path), fault.code)
    assert RANKS.index(finding.severity) >= RANKS.index(fault.severity)
    assert fault.place in finding.evidence + finding.what
    assert finding.fix


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_raises_no_other_alarm(tmp_path, name):
    also = {
        # sorted data is what the buffer cannot undo; its size is what makes the record huge
        "a_buffer_that_is_too_small": {"AB301"},
        "one_huge_record": {"AB203"},
    }
    fault = FAULTS[name]
    assert above_note(diagnosed(fault.plant(pictures()), tmp_path)) <= {fault.code, *also.get(name, ())}


def test_there_are_thirty_faults():
    assert len(FAULTS) >= 30


@pytest.mark.parametrize("name", CLEAN)
def test_clean_data_raises_nothing_above_a_note(tmp_path, name):
    assert not above_note(diagnosed(CLEAN[name](), tmp_path))


def test_there_are_twenty_clean_data_sets():
    assert len(CLEAN) >= 20


PAIRS = [pair for pair in combinations(FAULTS, 2) if not FAULTS[pair[0]].touches & FAULTS[pair[1]].touches]


def both_are_found(folder, pair, make=pictures):
    one, other = (FAULTS[name] for name in pair)
    found = diagnosed(other.plant(one.plant(make())), folder)
    for fault in (one, other):
        assert of_code(found, fault.code), (pair, found.findings)


@pytest.mark.parametrize("pair", Random(11).sample(PAIRS, 40), ids=" and ".join)
def test_two_faults_at_once_are_both_found(tmp_path, pair):
    both_are_found(tmp_path, pair)


@pytest.mark.soak
@pytest.mark.parametrize("shape", ["pictures", "tables", "texts"])
def test_any_two_faults_at_once_are_both_found(tmp_path, shape):
    for number, pair in enumerate(PAIRS):
        folder = tmp_path / str(number)
        folder.mkdir()
        both_are_found(folder, pair, SHAPES[shape])


@pytest.mark.parametrize(
    "name",
    [
        "a_list_too_short",
        "a_column_in_millions",
        "a_label_far_out",
        "a_rare_class",
        "one_class",
        "sorted_by_label",
        "a_buffer_that_is_too_small",
        "sorted_by_time",
    ],
)
def test_a_record_that_is_no_example_hides_nothing_about_the_others(tmp_path, name):
    both_are_found(tmp_path, (name, "a_record_that_is_no_example"))


def test_data_without_any_example_is_a_note(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(b"".join(framed(b"\xff\xff%d" % n) for n in range(50)))
    found = diagnose(f"{tmp_path}/*.tfrecord")
    assert not above_note(found)
    assert of_code(found, "AB110")


def test_a_record_without_a_label_hides_nothing_about_the_others(tmp_path):
    plan = FAULTS["sorted_by_label"].plant(pictures())
    del plan.records[5]["label"]
    found = diagnosed(plan, tmp_path)
    assert of_code(found, "AB301")
    assert of_code(found, "AB201")


def test_what_was_found_is_told_as_json(tmp_path):
    found = diagnosed(FAULTS["sorted_by_label"].plant(pictures()), tmp_path)
    told = json.loads(found.to_json())
    assert told["findings"][0]["code"] == "AB301"
    assert told["findings"][0]["severity"] == "error"
    assert told["records"] == 600


def test_a_stream_that_shuffles_makes_sorted_data_a_note(tmp_path):
    paths = FAULTS["sorted_by_label"].plant(pictures()).write(tmp_path)
    (stored,) = of_code(diagnose(ab.read(paths).batch(32)), "AB301")
    (shuffled,) = of_code(diagnose(ab.read(paths).shuffle(seed=1).batch(32)), "AB301")
    assert (stored.severity, shuffled.severity) == ("error", "note")


def test_a_stream_of_arrays_is_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"ab\.read"):
        diagnose(ab.from_arrays([1, 2, 3]))


def test_a_misspelt_label_is_refused_with_the_features_there_are(tmp_path):
    paths = pictures().write(tmp_path)
    with pytest.raises(
        ValueError, match=r"no feature `labl` in the 600 records .* there are image, label, x;"
    ):
        diagnose(paths, label="labl")
    assert diagnose(paths, label="label").facts.label == "label"


def test_a_label_of_files_that_hold_nothing_is_no_complaint_of_its_own(tmp_path):
    (tmp_path / "empty.tfrecord").touch()
    assert of_code(diagnose([str(tmp_path / "empty.tfrecord")], label="label"), "AB103")


def test_held_out_records_need_no_label(tmp_path):
    plan = pictures(1)
    held_out = [{name: one[name] for name in ("image", "x")} for one in pictures(2).records]
    assert not above_note(diagnose(replace(plan, held_out=held_out).write(tmp_path), label="label"))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"label": 3}, "label is 3; it is the name of a feature"),
        ({"label": ""}, "label is ''; it is the name of a feature"),
        ({"batch_size": 0}, "batch_size is 0; it is a whole number from 1 on"),
        ({"batch_size": "many"}, "batch_size is 'many'"),
        ({"batch_size": 2.5}, "batch_size is 2.5"),
        ({"shuffle_buffer": -1}, "shuffle_buffer is -1"),
        ({"steps_per_epoch": 0}, "steps_per_epoch is 0"),
        ({"prefetch": 0}, "prefetch is 0"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_by_name(tmp_path, wrong, told):
    with pytest.raises(ValueError, match=told):
        diagnose(pictures().write(tmp_path), **wrong)


def test_a_sample_finds_what_is_everywhere_and_says_how_exact_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("anybatch.doctor.measure.sample.SAMPLE_RECORDS", 2000)
    plan = FAULTS["sorted_by_label"].plant(pictures(count=20_000))
    found = diagnose(plan.write(tmp_path), everything=False, batch_size=32)
    assert of_code(found, "AB301")
    assert "2,0" in found.looked_at
    assert "±" in found.looked_at


def test_a_clean_sample_stays_clean(tmp_path, monkeypatch):
    monkeypatch.setattr("anybatch.doctor.measure.sample.SAMPLE_RECORDS", 2000)
    found = diagnose(pictures(count=20_000).write(tmp_path), everything=False, batch_size=32)
    assert not above_note(found)
    assert found.facts.sample.records < 4000


def mixed_with_copies(plan, copied):
    """The records, those of some places twice, in any order."""
    records = [*plan.records, *(plan.records[at] for at in copied)]
    order = np.random.default_rng(2).permutation(len(records))
    return replace(plan, records=[records[at] for at in order])


def about_percent(finding):
    """The share of all records that a finding estimates from a sample."""
    return float(re.search(r"about ([\d.]+)% of all", finding.evidence)[1])


@pytest.mark.parametrize(
    ("copied", "percent"), [(range(0, 20_000, 3), 25), ([5] * 5_000, 20), ([], None)], ids=str
)
def test_the_share_of_copies_is_that_of_all_records_and_not_of_a_sample(
    tmp_path, monkeypatch, copied, percent
):
    monkeypatch.setattr("anybatch.doctor.measure.sample.SAMPLE_RECORDS", 2000)
    plan = mixed_with_copies(pictures(count=20_000), copied)
    found = of_code(diagnose(plan.write(tmp_path), everything=False), "AB210")
    assert [one.severity for one in found] == (["warning"] if percent else [])
    assert all(about_percent(one) == pytest.approx(percent, abs=8) for one in found)


def test_a_leak_is_estimated_for_all_records_and_not_for_a_sample(tmp_path, monkeypatch):
    monkeypatch.setattr("anybatch.doctor.measure.sample.SAMPLE_RECORDS", 2000)
    plan = mixed_with_copies(pictures(count=20_000), [])
    held_out = [*pictures(9, count=1_500).records, *plan.records[::40]]
    (finding,) = of_code(
        diagnose(replace(plan, held_out=held_out).write(tmp_path), everything=False), "AB211"
    )
    assert finding.severity == "error"
    assert about_percent(finding) == pytest.approx(25, abs=8)


def test_copies_are_counted_and_not_estimated_where_everything_was_read(tmp_path):
    plan = FAULTS["records_twice"].plant(pictures())
    (finding,) = of_code(diagnosed(plan, tmp_path), "AB210")
    assert "200 of 800 looked at, 25.00%; record" in finding.evidence


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_a_sample_of_compressed_data_is_not_its_head(tmp_path, monkeypatch, compression):
    monkeypatch.setattr("anybatch.doctor.measure.sample.SAMPLE_RECORDS", 2000)
    rng = np.random.default_rng(0)
    records = [{"x": rng.normal(size=2), "label": n // 10_000} for n in range(20_000)]
    paths = ab.write(tmp_path / "a.tfrecord", records, compression=compression)
    found = diagnose(paths, everything=False, batch_size=64)
    assert not of_code(found, "AB209")
    assert of_code(found, "AB301")
    assert found.facts.sample.label.counts == pytest.approx([1000, 1000], abs=130)


def test_as_many_names_as_records_are_one_finding_and_bounded(tmp_path):
    records = [{"x": n / 7, f"user_{n % 1500}": 1.0, "label": n % 2} for n in range(3000)]
    found = diagnose(ab.write(tmp_path / "a.tfrecord", records))
    (names,) = of_code(found, "AB201")
    assert "1,502 names in 3,000 records" in names.evidence
    constant = of_code(found, "AB205")
    assert len(constant) == 21
    assert constant[-1].what.startswith("and 1,480 more of AB205")
    assert len(found.facts.sample.lengths) <= 1001
    assert found.facts.sample.label is not None


def test_nothing_but_indexes_is_left_beside_the_data(tmp_path):
    paths = pictures().write(tmp_path)
    diagnose(paths)
    left = {one.name for one in tmp_path.iterdir()} - {Path(path).name for path in paths}
    assert all(name.startswith(".") and name.endswith(".abindex") for name in left)


def labelled(count, **more):
    rng = np.random.default_rng(0)
    return [
        {"x": rng.normal(size=3), "label": n % 2, **{k: v(n) for k, v in more.items()}} for n in range(count)
    ]


@pytest.mark.parametrize(
    "amount", [lambda n: n * 7 % 40 - 10, lambda n: [100, 250, 500, 1200, 9900][n * 7 % 5]]
)
def test_amounts_are_no_labels_out_of_range(tmp_path, amount):
    paths = ab.write(tmp_path / "a.tfrecord", labelled(600, target=amount))
    assert not of_code(diagnose(paths, label="target"), "AB207")


def test_shards_whose_records_are_of_another_length_differ(tmp_path):
    rng = np.random.default_rng(0)
    for name, length in (("a", 3), ("b", 4)):
        records = [{"x": rng.normal(size=length), "label": n % 2} for n in range(100)]
        ab.write(tmp_path / f"{name}.tfrecord", records)
    found = diagnose(f"{tmp_path}/*.tfrecord")
    (finding,) = of_code(found, "AB106")
    assert finding.severity == "error"
    assert "3 values per record" in finding.evidence
    assert not of_code(found, "AB203")


def test_of_two_shards_one_can_be_the_large_one(tmp_path):
    ab.write(tmp_path / "a.tfrecord", labelled(600))
    ab.write(tmp_path / "b.tfrecord", labelled(3))
    (finding,) = of_code(diagnose(f"{tmp_path}/*.tfrecord"), "AB104")
    assert "600 records" in finding.evidence


def test_the_order_does_not_matter_within_one_batch(tmp_path):
    paths = FAULTS["sorted_by_label"].plant(pictures()).write(tmp_path)
    found = diagnose(paths, batch_size=600, shuffle_buffer=50)
    assert not of_code(found, "AB301")
    assert not of_code(found, "AB302")


def test_where_a_batch_is_larger_than_the_data_the_order_is_judged_by_the_advised_one(tmp_path):
    paths = FAULTS["sorted_by_label"].plant(pictures()).write(tmp_path)
    (order,) = of_code(diagnose(paths, batch_size=2000), "AB301")
    assert "batches of 60 as stored" in order.evidence


def test_of_batches_of_one_some_in_a_row_are_judged(tmp_path):
    paths = FAULTS["sorted_by_label"].plant(pictures()).write(tmp_path)
    (finding,) = of_code(diagnose(paths, batch_size=1), "AB301")
    assert "batches of 32" in finding.evidence


def test_a_last_batch_that_is_dropped_is_no_finding(tmp_path):
    data = ab.read(pictures(count=601).write(tmp_path))
    assert of_code(diagnose(data.batch(100)), "AB403")
    assert not of_code(diagnose(data.batch(100, drop_remainder=True)), "AB403")


@pytest.mark.parametrize(
    ("when", "told"),
    [(lambda n: 20230101 + n // 60, "rise"), (lambda n: 2e9 - 1000.0 * n, "newest first")],
)
def test_the_order_of_time_is_seen_with_ties_and_newest_first(tmp_path, when, told):
    paths = ab.write(tmp_path / "a.tfrecord", labelled(600, date=when))
    (finding,) = of_code(diagnose(paths), "AB303")
    assert told in finding.evidence


def test_a_constant_is_told_to_the_last_digit(tmp_path):
    paths = ab.write(tmp_path / "a.tfrecord", labelled(60, version=lambda _: 20230101))
    (finding,) = of_code(diagnose(paths), "AB205")
    assert finding.evidence.startswith("20230101 ")


def test_a_label_that_shows_no_classes_is_said(tmp_path):
    records = [{"x": n / 7, "label": [1.0, float(n % 2)]} for n in range(100)]
    paths = ab.write(tmp_path / "a.tfrecord", records)
    assert "`label` has 2 values per record" in diagnose(paths, label="label").looked_at


@pytest.mark.parametrize("fault", ["sorted_by_label", "runs_of_one_label", "a_rare_class", "one_class"])
@pytest.mark.parametrize("name", ["label", "picked"])
def test_labels_that_mark_the_place_of_their_class_are_judged_as_its_number_is(tmp_path, fault, name):
    plan, places = FAULTS[fault].plant(pictures()), np.eye(40)
    plan = plan.changed(lambda _, one: {"x": one["x"], name: places[one["label"]]})
    found = diagnose(plan.write(tmp_path), label=None if name == "label" else name)
    assert of_code(found, FAULTS[fault].code)
    assert not above_note(found) - {FAULTS[fault].code}


def test_a_place_far_out_stands_for_its_class(tmp_path):
    plan, places = pictures(), np.eye(40)
    plan = plan.changed(lambda _, one: {"x": one["x"], "label": places[one["label"] * 4]})
    assert not above_note(diagnosed(plan, tmp_path))


@pytest.mark.parametrize(
    ("flips", "told"),
    [(1, "1 stretch of the data is damaged"), (2, "2 stretches of the data are damaged")],
)
def test_what_is_counted_is_told_in_its_number(tmp_path, flips, told):
    (file,) = ab.write(tmp_path / "a.tfrecord", [{"x": [float(n)] * 50} for n in range(100)])
    content = bytearray(Path(file).read_bytes())
    for number in range(flips):
        content[5_000 * (number + 1)] ^= 4
    Path(file).write_bytes(content)
    (finding,) = of_code(diagnose(file), "AB101")
    assert finding.what.startswith(told)
