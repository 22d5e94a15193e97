"""The fix that a finding proposes, applied as it stands, makes the finding go away."""

import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import anybatch as ab
from anybatch.cli import app
from anybatch.doctor import diagnose
from anybatch.doctor.checks.batch import shuffled_read
from anybatch.doctor.measure import Facts, SampleFacts, ShardFacts
from anybatch.records import ShardReport, Sizes
from tests.doctor.data_sets import FAULTS, pictures


def planted(name, folder):
    plan = FAULTS[name].plant(pictures())
    paths = plan.write(folder)
    (finding,) = [one for one in diagnose(paths, **plan.asked).findings if one.code == FAULTS[name].code]
    return plan, paths, finding


def remaining(paths, code, **asked):
    return [one for one in diagnose(paths, **asked).findings if one.code == code and one.severity != "note"]


@pytest.fixture(scope="module")
def trains():
    """What trains one layer on records for an epoch, and returns the loss."""
    import keras

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    fresh = model.get_weights()

    def loss_on(paths, label="label", batch_size=64, prefetch=2, steps_per_epoch=None):
        model.set_weights(fresh)
        features = {"x": ab.Numbers("float32", (4,)), label: ab.infer_features(paths)[label]}
        data = ab.read(paths, features).shuffle(seed=7).batch(batch_size).prefetch(prefetch)
        done = ab.fit(model, data.as_supervised("x", label), steps_per_epoch=steps_per_epoch, verbose=0)
        (loss,) = done.history["loss"]
        return loss

    return loss_on


def files_in(folder):
    return sorted(str(one) for one in Path(folder).iterdir() if not one.name.startswith("."))


@pytest.mark.parametrize(
    "name",
    [
        "a_flipped_bit_in_the_data",
        "a_flipped_bit_in_a_header",
        "zeros_between_two_records",
        "a_file_cut_in_a_record",
        "a_file_cut_in_a_header",
        "one_large_shard",
        "one_compressed_shard",
        "sorted_by_label",
        "runs_of_one_label",
        "sorted_by_a_continuous_label",
    ],
)
def test_the_proposed_command_cures(tmp_path, monkeypatch, trains, name):
    (tmp_path / "data").mkdir()
    plan, _, finding = planted(name, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(finding.fix.splitlines()[0])
    assert program == "anybatch"
    assert CliRunner().invoke(app, arguments).exit_code in {0, 1}
    cured = tmp_path / arguments[arguments.index("--to") + 1]
    # what could not be read lies beside the repaired shards, for whoever wants it
    shards = [file for file in files_in(cured) if ".damaged" not in file]
    assert not remaining(shards, finding.code, **plan.asked)
    assert np.isfinite(trains(shards))


def test_the_empty_file_can_be_removed(tmp_path, trains):
    _, _, finding = planted("an_empty_file", tmp_path)
    program, file = shlex.split(finding.fix.split("#")[0])
    assert program == "rm"
    Path(file).unlink()
    assert not remaining(files_in(tmp_path), "AB103")
    assert np.isfinite(trains(files_in(tmp_path)))


@pytest.mark.parametrize(
    "name",
    [
        "a_nan",
        "an_infinity",
        "a_negative_label",
        "a_label_far_out",
        "a_constant",
        "a_feature_in_millions",
        "a_column_in_millions",
    ],
)
def test_the_proposed_line_of_python_cures(tmp_path, trains, name):
    _, paths, finding = planted(name, tmp_path)
    features = ab.infer_features(paths)
    names = {"ab": ab, "np": np, "features": features}
    names["data"] = ab.read(paths, features)
    exec(finding.fix, names)
    data = names["data"] if len(features) == len(ab.infer_features(paths)) else ab.read(paths, features)
    (tmp_path / "new").mkdir()
    cured = ab.write(tmp_path / "new" / "train.tfrecord", list(data))
    assert not remaining(cured, finding.code)
    assert np.isfinite(trains(cured))


@pytest.mark.parametrize(
    ("name", "pattern", "argument"),
    [
        ("a_batch_larger_than_the_data", r"\.batch\((\d+)\)", "batch_size"),
        ("a_batch_that_does_not_fit", r"in parts of up to (\d+)", "batch_size"),
        ("a_prefetch_larger_than_memory", r"\.prefetch\((\d+)\)", "prefetch"),
        ("too_many_steps", r"steps_per_epoch=(\d+)", "steps_per_epoch"),
    ],
)
def test_the_proposed_number_cures(tmp_path, trains, name, pattern, argument):
    plan, paths, finding = planted(name, tmp_path)
    number = int(re.search(pattern, finding.fix)[1])
    better = {**plan.asked, argument: number}
    assert not remaining(paths, finding.code, **better)
    # memory is what the doctor was told: these tiny numbers are far below what a process takes
    assert np.isfinite(trains(paths, **{name: value for name, value in better.items() if name != "memory"}))


def test_the_proposed_buffer_cures(tmp_path):
    import tensorflow as tf

    plan, paths, finding = planted("a_buffer_that_is_too_small", tmp_path)
    records = tf.data.TFRecordDataset(paths)
    proposed = re.search(r"\.shuffle\((\d+)\)", finding.fix)
    assert not remaining(paths, finding.code, **{**plan.asked, "shuffle_buffer": int(proposed[1])})
    data = eval(f"records{proposed[0]}", {"records": records}).batch(plan.asked["batch_size"])
    parsed = data.map(
        lambda batch: tf.io.parse_example(
            batch, {"x": tf.io.FixedLenFeature([4], tf.float32), "label": tf.io.FixedLenFeature([], tf.int64)}
        )
    )
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    (loss,) = ab.fit(model, parsed.map(lambda one: (one["x"], one["label"])), verbose=0).history["loss"]
    assert np.isfinite(loss)


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_the_proposed_shuffle_can_be_read(tmp_path, compression):
    records = [{"label": n // 100, "time": n} for n in range(1_000)]
    paths = ab.write(tmp_path / "a.tfrecord", records, compression=compression)
    # a window of a compressed data set has to fit as well, and is a MiB at least
    found = {one.code: one.fix for one in diagnose(paths, shuffle_buffer=10, memory=64).findings}
    if compression:
        assert found.pop("AB406").startswith("anybatch reshard")
    for code in found.keys() & {"AB301", "AB302", "AB303", "AB406"}:
        (proposed,) = re.findall(r"ab\.read\(paths\)\.shuffle\([^)]*\)", found[code])
        assert sum(1 for _ in eval(proposed, {"ab": ab, "paths": paths})) == 1_000


def packed_facts(records, record_bytes):
    """Facts about compressed shards of so many records of one size."""
    report = ShardReport("a.gz", compression="GZIP", records=records)
    sizes = Sizes(records=records, total_bytes=records * record_bytes)
    shard = ShardFacts(report, sizes, records, 0, ())
    return Facts("a.gz", (shard,), everything=True, sizes=sizes, sample=SampleFacts(np.arange(3)))


@pytest.mark.parametrize(
    ("needed", "window"),
    [
        (100, "1MiB"),
        (1_000, "2MiB"),
        (100_000, "256MiB"),
        (500_000, "1024MiB"),
        (600_000, None),
        (None, None),
    ],
)
def test_the_window_of_compressed_shards_is_as_large_as_needed(needed, window):
    proposed = shuffled_read(packed_facts(10_000_000, 1_024), needed)
    assert proposed == (f'ab.read(paths).shuffle(seed=7, window="{window}")' if window else "")


QUOTED = "it's; touch PWNED; echo '"


def test_no_name_of_a_file_is_a_command_when_a_fix_is_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ab.write(f"{QUOTED}.tfrecord", [{"x": n / 7} for n in range(50)])
    ab.write("z.tfrecord", [{"x": n} for n in range(50)])
    Path(f"-{QUOTED}0.tfrecord").touch()
    Path(f"{QUOTED}9.tfrecord").symlink_to("nowhere")
    found = {one.code: one.fix for one in diagnose(["*.tfrecord"]).findings}
    for code in ("AB103", "AB106", "AB107"):
        command = found[code].split("  # ")[0]
        names = [word for word in shlex.split(command) if QUOTED in word]
        assert [Path(name).name.endswith(".tfrecord") for name in names] == [True], command
    subprocess.run(["sh", "-c", found["AB103"]], check=True)
    assert not Path("PWNED").exists()
    assert not Path(f"-{QUOTED}0.tfrecord").exists()


ODD = "a[b] \"c\" 'd' \\ \n{e}"


def test_any_name_of_a_feature_can_be_pasted_as_python(tmp_path):
    rng = np.random.default_rng(0)
    records = [
        {
            f"1{ODD}": rng.normal() * 1e7,
            f"2{ODD}": 0.5,
            f"3{ODD}": rng.integers(0, 9, n % 4 + 1),
            f"4{ODD}": float("nan") if n == 3 else rng.normal(),
            **({f"5{ODD}": b"some"} if n % 3 else {}),
            **({f"6{ODD}": rng.normal(size=3)} if n % 3 else {}),
            **({f"7{ODD}": n} if n % 3 else {}),
            f"8{ODD}": b"x" * (n % 5),
            "label": 255 if n == 7 else n % 2,
        }
        for n in range(200)
    ]
    paths = ab.write(tmp_path / "a.tfrecord", records)
    features = ab.infer_features(paths)
    names = {"ab": ab, "np": np, "features": features, "data": ab.read(paths)}
    found = [one for one in diagnose(paths).findings if one.code in PYTHON]
    assert {one.code for one in found} == PYTHON
    for finding in found:
        exec(finding.fix, names)
    assert len(list(names["data"].batch(50))) == 4
    batch = next(iter(ab.read(paths, features).batch(50)))
    assert batch[f"6{ODD}"].shape == (50, 3)
    assert batch[f"7{ODD}"].dtype == np.int64
    assert f"2{ODD}" not in batch


PYTHON = {"AB201", "AB203", "AB204", "AB205", "AB206", "AB207"}
