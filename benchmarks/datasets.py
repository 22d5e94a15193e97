"""The data sets: what they hold, and where their files lie once written."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.digest import Columns, Lists

FORMAT = 2  # raise when the files of equal parameters change
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Field:
    """One feature, in words that every contender can translate into its own."""

    name: str
    kind: Literal["numbers", "raw", "ragged", "bytes", "jpeg"]
    dtype: str = ""
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is written: how many records of which fields into how many shards."""

    name: str
    fields: tuple[Field, ...]
    columns: Callable[[np.random.Generator, int], Columns]
    records: int
    quick_records: int
    shards: int = 8

    def count(self, quick: bool) -> int:
        """Return how many records a run of that size has."""
        return self.quick_records if quick else self.records


@dataclass(frozen=True, slots=True)
class Written:
    """A data set on disk, and the truth about it: what was put in."""

    folder: Path
    shards: tuple[str, ...]
    truth: Mapping[str, str | int]
    file_bytes: int

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the manifest of a written data set."""
        manifest = json.loads((folder / MANIFEST).read_text())
        shards = tuple(str(folder / name) for name in manifest["shards"])
        return cls(folder, shards, manifest["truth"], sum(map(os.path.getsize, shards)))

    @classmethod
    def nothing(cls, data_folder: Path, promised: Mapping[str, int]) -> Self:
        """Return what a case has that reads no files: only what its contenders must prove."""
        return cls(data_folder.resolve() / "none", (), promised, 0)


def ensure(dataset: Dataset, data_folder: Path, *, quick: bool) -> Written:
    """Return the data set, written now if it is not there. It appears whole or not at all."""
    folder = folder_of(dataset, data_folder, quick=quick)
    if not (folder / MANIFEST).exists():
        # in a process of its own: the writer is TensorFlow's, and the harness stays small
        size = ["--quick"] if quick else []
        subprocess.run(
            [sys.executable, "-m", "benchmarks.make", dataset.name, str(data_folder), *size],
            env={"TF_CPP_MIN_LOG_LEVEL": "2"} | os.environ,
            check=True,
        )
    return Written.load(folder)


def folder_of(dataset: Dataset, data_folder: Path, *, quick: bool) -> Path:
    """Return the folder whose name says all parameters."""
    return data_folder.resolve() / f"{dataset.name}-{dataset.count(quick)}x{dataset.shards}-v{FORMAT}"


def _labels(rng: np.random.Generator, rows: int) -> np.ndarray:
    return rng.integers(0, 10, rows, dtype=np.int64)


def _floats(rng: np.random.Generator, rows: int) -> Columns:
    return {"x": rng.standard_normal((rows, 100), dtype=np.float32), "label": _labels(rng, rows)}


def _pixels(shape: tuple[int, ...], rng: np.random.Generator, rows: int) -> Columns:
    return {"image": rng.integers(0, 256, (rows, *shape), dtype=np.uint8), "label": _labels(rng, rows)}


def _jpegs(rng: np.random.Generator, rows: int) -> Columns:
    tf: Any = import_module("tensorflow")
    files = [tf.io.encode_jpeg(_photo(rng, JPEG_SIDE), quality=90).numpy() for _ in range(rows)]
    return {"image": Lists.of_bytes(files), "label": _labels(rng, rows)}


def _photo(rng: np.random.Generator, side: int) -> NDArray[np.uint8]:
    """Return RGB pixels: frequencies and colours as strong as in photographs, and some sharp edges."""
    across, down = np.meshgrid(np.fft.rfftfreq(side), np.fft.fftfreq(side))
    strength = 1 / np.maximum(np.hypot(across, down), 1 / side)
    phases = np.exp(2j * np.pi * rng.random((4, *strength.shape)))
    brightness, *colours = np.fft.irfft2(strength * phases, (side, side))
    picture = brightness[..., None] + 0.3 * np.stack(colours, axis=-1)
    picture = 128 + 45 * (picture - picture.mean()) / picture.std()
    y, x = np.mgrid[0:side, 0:side]
    for _ in range(6):
        inside = np.hypot(y - rng.integers(side), x - rng.integers(side)) < rng.uniform(0.05, 0.2) * side
        picture[inside] = picture[inside] * 0.5 + rng.uniform(0, 128, 3)
    return np.clip(picture, 0, 255).astype(np.uint8)


def _ragged(rng: np.random.Generator, rows: int) -> Columns:
    # tokens start at 1, since 0 is what pads them; their varints take one to three bytes
    counts, letters = rng.integers(0, 61, rows), rng.integers(0, 41, rows)
    tokens = (50_000 ** rng.random(int(counts.sum()))).astype(np.int64)
    text = rng.integers(97, 123, int(letters.sum()), dtype=np.uint8)
    return {
        "tokens": Lists.of_lengths(tokens, counts),
        "text": Lists.of_lengths(text, letters),
        "label": _labels(rng, rows),
    }


def _integers(rng: np.random.Generator, rows: int) -> Columns:
    # what costs most to take apart: any 64 bits, numbers below zero, and some that rise from record to record
    return {
        "hash": rng.integers(-(2**63), 2**63, (rows, 16), dtype=np.int64),
        "change": rng.integers(-1_000, 1_000, (rows, 16)),
        "time": 1_700_000_000_000 + np.arange(rows * 16, dtype=np.int64).reshape(rows, 16),
        "label": _labels(rng, rows),
    }


LABEL = Field("label", "numbers", "int64")
FLOATS = (Field("x", "numbers", "float32", (100,)), LABEL)
SMALL, LARGE = (28, 28, 1), (224, 224, 3)
IMAGE = (Field("image", "raw", "uint8", LARGE), LABEL)
JPEG_SIDE = 512

DATASETS = {
    dataset.name: dataset
    for dataset in (
        Dataset("floats", FLOATS, _floats, 1_000_000, 50_000),
        Dataset(
            "bytes784",
            (Field("image", "raw", "uint8", SMALL), LABEL),
            partial(_pixels, SMALL),
            500_000,
            30_000,
        ),
        Dataset("images", IMAGE, partial(_pixels, LARGE), 5_000, 1_000),
        *(
            Dataset(f"images_{times}x", IMAGE, partial(_pixels, LARGE), 100 * times, 20 * times)
            for times in (1, 10)
        ),
        Dataset("floats_4m", FLOATS, _floats, 4_000_000, 50_000, shards=32),
        Dataset("images_10k", IMAGE, partial(_pixels, LARGE), 10_000, 1_000, shards=16),
        Dataset("jpeg", (Field("image", "jpeg", "uint8", LARGE), LABEL), _jpegs, 4_000, 300),
        Dataset(
            "ragged",
            (Field("tokens", "ragged", "int64"), Field("text", "bytes"), LABEL),
            _ragged,
            300_000,
            20_000,
        ),
        Dataset(
            "integers",
            (*(Field(name, "numbers", "int64", (16,)) for name in ("hash", "change", "time")), LABEL),
            _integers,
            300_000,
            60_000,
        ),
        Dataset("shards100", FLOATS, _floats, 400_000, 20_000, shards=100),
        Dataset("shards1000", FLOATS, _floats, 200_000, 20_000, shards=1_000),
    )
}
