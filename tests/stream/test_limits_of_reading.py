"""What reading may hold: enough for every record that fits, and nothing is made that nobody wants."""

import gzip
import os
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

import anybatch as ab
from anybatch import _native
from anybatch.errors import CorruptRecord, DoesNotFit

MIB = 1 << 20
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")


def framed(data):
    length = len(data).to_bytes(8, "little")
    crc = [_native.masked_crc32c(part).to_bytes(4, "little") for part in (length, data)]
    return length + crc[0] + data + crc[1]


def reader(path, *, limit_bytes, batch, schema=None, compression="", order=(), threads=1):
    index = None
    if order is not None:
        scan = _native.Scan(str(path), compression)
        while scan.advance(1 << 30):
            pass
        index = scan.finish()
    return _native.Reader(
        [(str(path), compression, index)],
        schema,
        batch=batch,
        most=batch,
        drop_remainder=False,
        on_corrupt="skip",
        order=None if order is None else list(order),
        start=0,
        threads=threads,
        depth=threads,
        limit_bytes=limit_bytes,
    )


def rows_of(reader):
    rows = []
    while (batch := reader.next()) is not None:
        rows.append(batch.rows)
    return rows


def told_by_system(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def own_bytes():
    return told_by_system("RssAnon")


def own_peak_bytes():
    return told_by_system("VmHWM")


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")


@ON_LINUX
def test_what_was_waiting_is_not_made_when_an_iterator_is_closed(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(os.urandom(100_000)) * 3_000)
    made = reader(path, limit_bytes=16 * MIB, batch=3_000, order=[("shuffle", [0, 0])])
    made.next()
    forget_peak()
    before = own_peak_bytes()
    del made
    assert own_peak_bytes() - before < 32 * MIB


@pytest.mark.parametrize("sizes", [(0.001, 0.9, 0.2), (0.4, 0.9, 0.2, 0.9), (0.3, 0.3, 0.9)])
def test_records_that_fit_alone_fit_in_a_batch(tmp_path, sizes):
    limit_bytes = 4 * MIB
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"".join(framed(bytes(int(size * limit_bytes))) for size in sizes))
    assert sum(rows_of(reader(path, limit_bytes=limit_bytes, batch=len(sizes)))) == len(sizes)


def wide_record(values):
    """Return a record with 40 features of so many numbers, and the schema to read it."""
    names = [f"f{n}" for n in range(40)]
    numbers = np.random.default_rng(0).integers(0, 100_000, values).astype("<i8").tobytes()
    schema = _native.Schema([(name, "context", "ragged", "int64", 0, None, True) for name in names])
    return _native.encode_example([(name, "int64", numbers) for name in names]), schema


def test_many_features_take_no_more_than_one_that_has_all_the_bytes(tmp_path):
    data, schema = wide_record(15_000)
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(data) * 3)
    limit_bytes = 8 * len(data) + 12 * MIB
    assert rows_of(reader(path, limit_bytes=limit_bytes, batch=1, schema=schema)) == [1, 1, 1]


def test_a_default_counts_for_every_record_without_a_value(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(_native.encode_example([("a", "int64", bytes(8))])) * 64)
    default = (b"x" * MIB,)
    schema = _native.Schema([("t", "context", "dense", "bytes", 1, list(default), False)])
    made = reader(path, limit_bytes=8 * MIB, batch=64, schema=schema)
    first = made.next()
    assert 1 <= first.rows <= 8
    assert first.rows + sum(rows_of(made)) == 64


@pytest.mark.parametrize("sizes", [(0.001, 0.4, 0.2), (0.1,) * 40, (0.4, 0.01) * 5])
def test_compressed_records_that_fit_alone_fit_in_a_batch(tmp_path, sizes):
    limit_bytes = 4 * MIB
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(b"".join(framed(bytes(int(size * limit_bytes))) for size in sizes)))
    made = reader(path, limit_bytes=limit_bytes, batch=len(sizes), compression="GZIP", order=None)
    assert sum(rows_of(made)) == len(sizes)


def test_compressed_records_become_much_larger_and_fit_all_the_same(tmp_path):
    data, schema = wide_record(300)
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(framed(data) * 600, 1))
    made = reader(
        path, limit_bytes=24 * MIB, batch=256, schema=schema, compression="GZIP", order=None, threads=3
    )
    sizes, ends = [], []
    while (batch := made.next()) is not None:
        sizes.append(batch.rows)
        ends.append(batch.ends_batch)
    assert np.cumsum(sizes)[np.array(ends)].tolist() == [256, 512, 600]


def hostile(size):
    """Return a file of so many bytes in which every record claims to reach to the end, but for empty ones."""
    empty, out = framed(b""), bytearray(framed(b"x"))
    while len(out) < size:
        out += max(0, size - len(out) - 56).to_bytes(8, "little") + b"\xde\xad\xbe\xef" + empty
    return bytes(out)


def test_nobody_waits_for_a_scan_that_takes_long(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(hostile(2 * MIB))
    made = reader(path, limit_bytes=64 * MIB, batch=1_000_000, order=None, threads=2)
    began = time.monotonic()
    time.sleep(0.2)
    made.stats()
    made.learnt()
    del made
    assert time.monotonic() - began < 2


FEW_THREADS = """
import resource, sys
import anybatch as ab
from anybatch import _native
from anybatch.errors import DoesNotFit
scan = _native.Scan(sys.argv[1], "")
while scan.advance(1 << 30): pass
index = scan.finish()
with open("/proc/self/statm") as pages:
    now = int(pages.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now + (8 << 20), resource.RLIM_INFINITY))
reader = _native.Reader([(sys.argv[1], "", index)], None, batch=2, most=2, drop_remainder=False,
    on_corrupt="raise", order=[], start=0, threads=16, depth=1, limit_bytes=1 << 20)
print(reader.next().rows)
"""


@ON_LINUX
def test_as_many_threads_as_there_can_be_do_it_all(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(bytes(100)) * 2)
    child = subprocess.run(
        [sys.executable, "-c", FEW_THREADS, path], capture_output=True, text=True, timeout=60, check=False
    )
    assert (child.stdout, child.returncode) == ("2\n", 0), child.stderr


@ON_LINUX
def test_threads_hold_no_compressed_records_beyond_the_limit(tmp_path):
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(framed(bytes(100_000)) * 3_000, 1))
    limit_bytes, before = 32 * MIB, own_bytes()
    made = reader(path, limit_bytes=limit_bytes, batch=1_000, compression="GZIP", order=None, threads=16)
    first = made.next()
    time.sleep(1)
    taken = sum(len(values) for values, _ in first.columns)
    assert own_bytes() - before - taken < limit_bytes + 12 * MIB


def png(width, height):
    return png_of(width, height, bytes((width * 3 + 1) * height))


def png_of(width, height, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(pixels, 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize("on_corrupt", ["raise", "skip"])
def test_an_image_that_is_too_large_is_no_damage_and_is_named_with_its_record(tmp_path, on_corrupt):
    path = tmp_path / "a.tfrecord"
    small, large = (
        framed(_native.encode_example([("image", "bytes", [file])])) for file in (png(8, 8), png(4000, 3000))
    )
    path.write_bytes(small + large)
    stream = ab.read(path, {"image": ab.Image(8, 8)}, on_corrupt=on_corrupt)
    with pytest.raises(DoesNotFit) as failure:
        list(stream.limit_memory("32MiB").batch(2))
    assert f"of the record at byte {len(small)} of {path}" in str(failure.value)
    assert [len(batch["image"]) for batch in stream.limit_memory(failure.value.enough).batch(2)] == [2]
    assert stream.corrupt == []


UNREADABLE = {
    "nothing": b"",
    "no image": b"GIF89a",
    "a JPEG that ends": b"\xff\xd8\xff\xe0\x00\x10JFIF",
    "a PNG that ends": png(8, 8)[:40],
    "more pixels than are read": png_of(100_000, 100_000, bytes(100)),
    "more pixels than its bytes hold": png_of(7_000, 7_000, bytes(100)),
}


@pytest.mark.parametrize("limit", ["8MiB", "2GiB"])
@pytest.mark.parametrize("what", UNREADABLE)
def test_an_image_that_nobody_could_decode_is_damage_under_any_limit(tmp_path, what, limit):
    files = [png(8, 8), UNREADABLE[what], png(8, 8)]
    shard = [{"image": file, "n": number} for number, file in enumerate(files)]
    (path,) = ab.write(tmp_path / "a.tfrecord", shard)
    features = {"image": ab.Image(8, 8), "n": ab.Numbers("int64")}
    stream = ab.read(path, features, on_corrupt="skip").limit_memory(limit)
    assert [int(record["n"]) for record in stream] == [0, 2]
    ((file, *_, reason),) = stream.corrupt
    assert str(file) == str(path)
    assert 'feature "image" is no readable image' in reason
    with pytest.raises(CorruptRecord, match="no readable image"):
        list(ab.read(path, features).limit_memory(limit))
