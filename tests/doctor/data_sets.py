"""Data sets on disk: clean ones of several shapes, and faults that can be planted in them."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import anybatch as ab
from tests.shard_files import flipped, framed


@dataclass(frozen=True)
class Planned:
    """A data set before it is written, and what is asked about it."""

    records: list
    shards: int = 3
    compression: str | None = None
    asked: dict = field(default_factory=dict)
    held_out: list = field(default_factory=list)
    after: tuple[Callable[[list[str]], None], ...] = ()
    """What happens to the files once they are written."""

    def changed(self, change):
        """The same with every record changed by a function of its place and itself."""
        return replace(self, records=[change(at, dict(one)) for at, one in enumerate(self.records)])

    def asking(self, **more):
        return replace(self, asked={**self.asked, **more})

    def then(self, happening):
        return replace(self, after=(*self.after, happening))

    def write(self, folder):
        """Write it, and return what diagnose takes."""
        folder = Path(folder)
        files = ab.write(
            folder / "train.tfrecord", self.records, shards=self.shards, compression=self.compression
        )
        for happening in self.after:
            happening(files)
        paths = sorted(str(one) for one in folder.iterdir() if not one.name.startswith("."))
        if not self.held_out:
            return paths
        return {"train": paths, "test": ab.write(folder / "held" / "test.tfrecord", self.held_out)}


def pictures(seed=0, count=600, classes=10):
    """Raw images with labels."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(count) % classes)
    return Planned([{"image": rng.bytes(64), "label": int(one), "x": rng.normal(size=4)} for one in labels])


def tables(seed=0, count=500):
    """Numbers with a label of two classes."""
    rng = np.random.default_rng(seed)
    return Planned(
        [
            {
                "age": rng.uniform(0, 1),
                "income": rng.uniform(0, 5),
                "x": rng.normal(size=4),
                "label": int(rng.integers(2)),
            }
            for _ in range(count)
        ]
    )


def texts(seed=0, count=500):
    """Token lists of any length."""
    rng = np.random.default_rng(seed)
    return Planned(
        [
            {
                "tokens": rng.integers(0, 1000, rng.integers(3, 40)),
                "x": rng.normal(size=4),
                "label": int(rng.integers(4)),
            }
            for _ in range(count)
        ]
    )


def prices(seed=0, count=400):
    """A regression."""
    rng = np.random.default_rng(seed)
    return Planned([{"x": rng.normal(size=4), "target": float(rng.normal())} for _ in range(count)])


def words(seed=0, count=400):
    """Labels that are text."""
    rng = np.random.default_rng(seed)
    names = [b"cat", b"dog", b"fox"]
    return Planned([{"x": rng.normal(size=4), "label": names[rng.integers(3)]} for _ in range(count)])


def bare(seed=0, count=400):
    """No label at all."""
    rng = np.random.default_rng(seed)
    return Planned([{"x": rng.normal(size=4), "noise": rng.bytes(32)} for _ in range(count)])


SHAPES = {one.__name__: one for one in (pictures, tables, texts, prices, words, bare)}

CLEAN = {
    **{
        f"{name} {seed}": (lambda make=make, seed=seed: make(seed))
        for name, make in SHAPES.items()
        for seed in (1, 2)
    },
    "one shard": lambda: replace(pictures(), shards=1),
    "many shards": lambda: replace(pictures(), shards=20),
    "GZIP": lambda: replace(pictures(), compression="GZIP"),
    "ZLIB": lambda: replace(tables(), compression="ZLIB"),
    "a batch asked for": lambda: pictures().asking(batch_size=50, memory="1GiB", steps_per_epoch=12),
    "a buffer asked for": lambda: pictures().asking(batch_size=50, shuffle_buffer=100),
    "a prefetch asked for": lambda: pictures().asking(batch_size=50, memory="1GiB", prefetch=10),
    "two sets apart": lambda: replace(pictures(1), held_out=pictures(2).records),
    "ten records": lambda: replace(tables(count=10), shards=1),
    "one record": lambda: replace(pictures(count=1), shards=1),
    "two classes to one": lambda: pictures(classes=2),
}


@dataclass(frozen=True)
class Fault:
    """Something planted: what it does, which code has to be found, and what it touches.

    Two faults that touch the same thing may undo each other, so they are not planted together.
    """

    code: str
    plant: Callable[[Planned], Planned]
    touches: frozenset
    severity: str = "warning"
    place: str = ""
    """What the evidence has to name."""


FAULTS = {}


def fault(code, touches, severity="warning", place=""):
    """Register a function that plants one fault."""

    def register(plant):
        FAULTS[plant.__name__] = Fault(code, plant, frozenset(touches.split()), severity, place)
        return plant

    return register


def rewritten(number, change):
    """What happens to the bytes of one file."""

    def happening(files):
        path = Path(files[number])
        path.write_bytes(change(path.read_bytes()))

    return happening


def first_record_end(content):
    (length,) = struct.unpack_from("<Q", content)
    return length + 16


@fault("AB101", "bytes0", "error", "00000-of")
def a_flipped_bit_in_the_data(plan):
    return plan.then(rewritten(0, lambda content: flipped(content, 20)))


@fault("AB101", "bytes1", "error", "00001-of")
def a_flipped_bit_in_a_header(plan):
    return plan.then(rewritten(1, lambda content: flipped(content, first_record_end(content) + 2)))


@fault("AB101", "bytes1", "error", "00001-of")
def zeros_between_two_records(plan):
    def torn(content):
        at = first_record_end(content)
        return content[:at] + bytes(100) + content[at:]

    return plan.then(rewritten(1, torn))


@fault("AB102", "bytes2", "error", "00002-of")
def a_file_cut_in_a_record(plan):
    return plan.then(rewritten(2, lambda content: content[:-7]))


@fault("AB102", "bytes2", "error", "00002-of")
def a_file_cut_in_a_header(plan):
    return plan.then(rewritten(2, lambda content: content + content[:9]))


@fault("AB103", "count", "warning", "a-empty")
def an_empty_file(plan):
    return plan.then(lambda files: Path(files[0]).with_name("a-empty.tfrecord").write_bytes(b""))


@fault("AB104", "count shares order label extra")
def one_large_shard(plan):
    def moved(files):
        folder = Path(files[0]).parent
        for at, record in enumerate(plan.records[:5]):
            ab.write(folder / f"z{at}.tfrecord", [record | {"x": [0.5 + at, 0.25, 0.125, 1.0]}])

    return replace(plan.then(moved), shards=3)


@fault("AB105", "count label extra", "warning", "GZIP")
def one_compressed_shard(plan):
    def added(files):
        rng = np.random.default_rng(5)
        records = [one | {"x": rng.normal(size=4)} for one in plan.records[: len(plan.records) // 3]]
        ab.write(Path(files[0]).with_name("packed.tfrecord.gz"), records, compression="GZIP")

    return plan.then(added)


@fault("AB106", "x order rows extra", "error", "int64")
def a_feature_of_another_kind_in_one_shard(plan):
    third = -(-len(plan.records) // 3)
    return plan.changed(lambda at, one: one | {"x": [at, 1, 2, 3]} if at < third else one)


@fault("AB106", "extra order rows", "error", "extra")
def a_feature_that_one_shard_lacks(plan):
    third = -(-len(plan.records) // 3)
    return plan.changed(lambda at, one: one if at < third else one | {"extra": [float(at % 7)]})


@fault("AB107", "count", "error", "dangling")
def a_file_that_is_gone(plan):
    return plan.then(lambda files: Path(files[0]).with_name("dangling.tfrecord").symlink_to("nowhere"))


@fault("AB108", "count", "error", "notes.txt")
def a_file_of_text(plan):
    return plan.then(lambda files: Path(files[0]).with_name("notes.txt").write_text("not a record\n" * 50))


@fault("AB110", "decoding", "error", "00001-of")
def a_record_that_is_no_example(plan):
    return plan.then(rewritten(1, lambda content: content + framed(b"\xff\xff\xff plainly something else")))


@fault("AB201", "extra", "warning", "extra")
def a_feature_missing_here_and_there(plan):
    return plan.changed(lambda at, one: one if at % 9 == 4 else one | {"extra": [float(at % 7)]})


@fault("AB202", "extra", "error", "extra")
def a_feature_of_two_kinds(plan):
    return plan.changed(lambda at, one: one | {"extra": [at] if at % 9 == 4 else [float(at % 7)]})


@fault("AB203", "x", "warning", "record 7")
def a_list_too_short(plan):
    return plan.changed(lambda at, one: one | {"x": one["x"][:3]} if at == 7 else one)


@fault("AB203", "extra", "warning", "record 9")
def raw_bytes_too_long(plan):
    return plan.changed(lambda at, one: one | {"extra": bytes(65 if at == 9 else 64)})


@fault("AB204", "extra", "error", "extra")
def a_nan(plan):
    return plan.changed(lambda at, one: one | {"extra": [float("nan") if at == 11 else at % 7 + 0.5]})


@fault("AB204", "extra", "error", "extra")
def an_infinity(plan):
    return plan.changed(lambda at, one: one | {"extra": [float("inf") if at == 11 else at % 7 + 0.5]})


@fault("AB205", "extra", "warning", "extra")
def a_constant(plan):
    return plan.changed(lambda _, one: one | {"extra": [0.25]})


@fault("AB206", "extra", "warning", "extra")
def a_feature_in_millions(plan):
    return plan.changed(lambda at, one: one | {"extra": [1e6 * (at % 7)]})


@fault("AB206", "x", "warning", "x[")
def a_column_in_millions(plan):
    return plan.changed(lambda _, one: one | {"x": np.array(one["x"]) * [1, 1, 1, 1e7]})


def numbered(plan):
    """The same with the labels of `pictures`, as numbers."""
    rng = np.random.default_rng(3)
    labels = rng.permutation(np.arange(len(plan.records)) % 10)
    return plan.changed(lambda at, one: one | {"label": int(labels[at])})


@fault("AB207", "label", "warning", "-1")
def a_negative_label(plan):
    return numbered(plan).changed(lambda at, one: one | {"label": -1} if at % 20 == 4 else one)


@fault("AB207", "label", "warning", "255")
def a_label_far_out(plan):
    return numbered(plan).changed(lambda at, one: one | {"label": 255} if at % 20 == 4 else one)


@fault("AB208", "label", "warning", "records against")
def a_rare_class(plan):
    return plan.changed(lambda at, one: one | {"label": int(at in (50, 200, 300))})


@fault("AB209", "label", "error", "1")
def one_class(plan):
    return plan.changed(lambda _, one: one | {"label": 1})


@fault("AB210", "rows order count shares", "warning", "record")
def records_twice(plan):
    return replace(plan, records=[*plan.records, *plan.records[::3]])


@fault("AB211", "held label x extra", "error", "test.tfrecord")
def held_out_records_trained_on(plan):
    return replace(plan, held_out=[*bare(9).records[:50], *plan.records[:25]])


@fault("AB301", "label order", "error", "label")
def sorted_by_label(plan):
    plan = numbered(plan)
    return replace(plan, records=sorted(plan.records, key=lambda one: one["label"]))


@fault("AB301", "label order", "warning", "label")
def runs_of_one_label(plan):
    runs = np.random.default_rng(3).integers(0, 5, len(plan.records))
    return plan.changed(lambda at, one: one | {"label": int(runs[at // 25])})


@fault("AB301", "label order held", "error", "label")
def sorted_by_a_continuous_label(plan):
    return plan.changed(lambda at, one: one | {"label": at / len(plan.records)})


@fault("AB302", "label order buffer", "warning", "60")
def a_buffer_that_is_too_small(plan):
    return sorted_by_label(plan).asking(batch_size=32, shuffle_buffer=60)


@fault("AB303", "extra rows held", "note", "timestamp")
def sorted_by_time(plan):
    return plan.changed(lambda at, one: one | {"timestamp": 1_600_000_000 + at})


@fault("AB401", "asked", "error", "KiB")
def a_batch_that_does_not_fit(plan):
    return plan.asking(batch_size=300, memory=2000)


@fault("AB402", "asked", "warning", "5,000")
def a_batch_larger_than_the_data(plan):
    return plan.asking(batch_size=5000)


@fault("AB403", "asked rows buffer bytes0 bytes1 bytes2 count decoding", "note")
def a_last_batch_of_one(plan):
    return replace(plan, records=plan.records[:101]).asking(batch_size=50)


@fault("AB404", "large held", "warning", "KiB")
def one_huge_record(plan):
    return plan.changed(lambda at, one: one | {"blob": bytes(200_000 if at == 31 else 3)})


@fault("AB405", "asked", "note", "memory")
def data_larger_than_memory(plan):
    return plan.asking(memory=20_000)


@fault("AB406", "asked buffer", "error", "400")
def a_buffer_larger_than_memory(plan):
    return plan.asking(memory=20_000, shuffle_buffer=400)


@fault("AB409", "asked", "error", "20 batches of 50")
def a_prefetch_larger_than_memory(plan):
    return plan.asking(batch_size=50, memory=30_000, prefetch=20)


@fault("AB407", "asked rows", "warning", "900")
def too_many_steps(plan):
    return plan.asking(batch_size=10, steps_per_epoch=900)
