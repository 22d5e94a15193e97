"""What may happen to a shard: one byte of it changes, or it is cut while somebody reads."""

import os
from itertools import chain

import pytest

import anybatch as ab


def labels(stream):
    return [batch["label"].tolist() for batch in stream]


def check_only_the_damaged_record_is_left_out(shard, copy, batches):
    """`batches` makes them of a path, with options of `ab.read`."""
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    copy.write_bytes(content)
    found = set(chain.from_iterable(labels(batches(copy, on_corrupt="skip"))))
    whole = set(chain.from_iterable(labels(batches(shard))))
    assert len(whole - found) == 1
    with pytest.raises(ab.AnybatchError, match=f"{copy}"):
        labels(batches(copy))


def check_a_shard_that_is_cut_meanwhile_is_named(shard, copy, batches):
    copy.write_bytes(shard.read_bytes())
    reading = iter(batches(copy))
    next(reading)
    os.truncate(copy, copy.stat().st_size // 3)
    with pytest.raises(ab.AnybatchError, match=f"{copy}"):
        for _ in reading:
            pass
