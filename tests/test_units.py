import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anybatch.units import LARGEST_BYTES, BadSize, count, parse_size, size

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
SIZES = st.integers(1, LARGEST_BYTES)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("512MiB", 512 * 1024**2),
        ("2GB", 2 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        (123, 123),
        ("123", 123),
        ("123B", 123),
        ("7 kb", 7000),
        ("7KIB", 7 * 1024),
        ("512M", 512 * 1024**2),
        ("2g", 2 * 1024**3),
        ("0.1TB", 10**11),
        ("  3 MiB  ", 3 * 1024**2),
        (2e9, 2_000_000_000),
        (np.int64(5), 5),
        (np.float64(6), 6),
    ],
)
def test_a_size_means_its_bytes(text, meant):
    parsed = parse_size(text)
    assert parsed == meant
    assert type(parsed) is int


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "MiB",
            "-1",
            "0",
            "0.0001KB",
            "0GiB",
            "nan",
            "inf",
            "1e9",
            "1,000",
            "2 GiBs",
            "2 G B",
            "1.MiB",
            ".5MiB",
        ),
        *("9" * 5000, "9EiB", "٣MiB", "1_000", "0x10", "2\nGB\n2"),
        *(-1, 0, 1.5, math.nan, math.inf, -math.inf, 2**63, True, None, b"2GB", [1]),
    ],
)
def test_what_is_no_size_is_refused_by_name(text):
    with pytest.raises(BadSize) as refused:
        parse_size(text)
    assert refused.value.text == (text if isinstance(text, str) else repr(text))


@given(SIZES)
def test_a_number_of_bytes_is_read_back_as_it_is(n_bytes):
    assert parse_size(n_bytes) == parse_size(str(n_bytes)) == n_bytes


@given(st.integers(1, LARGEST_BYTES // 2))
def test_a_printed_size_means_nearly_the_same(n_bytes):
    assert abs(parse_size(size(n_bytes)) - n_bytes) <= n_bytes / 200 + 1


@given(st.integers(1, LARGEST_BYTES // 2))
def test_a_size_printed_upwards_is_enough_and_little_more(n_bytes):
    enough = parse_size(size(n_bytes, up=True))
    assert n_bytes <= enough <= n_bytes * 1.011


@given(SIZES, SIZES)
def test_a_larger_size_never_prints_as_a_smaller_one(a, b):
    low, high = sorted((a, b))
    numbers = []
    for n_bytes in (low, high):
        number, unit = size(n_bytes).split()
        numbers.append(float(number) * 1024 ** UNITS.index(unit))
    assert numbers[0] <= numbers[1]


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1024**2 - 1, "1 MiB"),
        (3 * 2**29, "1.5 GiB"),
        (10 * 2**20, "10 MiB"),
        (100 * 2**30, "100 GiB"),
        (-2048, "-2 KiB"),
    ],
)
def test_a_size_prints_with_three_digits_at_most_and_no_idle_zeros(n_bytes, text):
    assert size(n_bytes) == text


def test_a_count_has_its_thousands_marked():
    assert count(1234567) == "1,234,567"
