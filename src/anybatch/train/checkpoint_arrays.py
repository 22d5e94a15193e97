"""Arrays by name in a safetensors file: written piece by piece, read one by one, or by some rows.

The safetensors library writes from copies of all arrays at once, which a process near its limit cannot
afford; its format is a header and the arrays' bytes, and it reads what is written here.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
}
_STORED = {stored: name for name, stored in _DTYPES.items()}
_STORED_AS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
"""For types that NumPy itself does not know, such as bfloat16: their bits."""

_ALIGNMENT = 8
_NAMES_KEY = "dtypes"


def pieces_of(arrays: Mapping[str, NDArray[Any]]) -> Iterator[Any]:
    """Yield the bytes of a safetensors file. Each array is asked for twice, and let go in between."""
    entries = _entries(arrays)
    header = json.dumps(entries).encode()
    header = header.ljust(-(-len(header) // _ALIGNMENT) * _ALIGNMENT)
    yield len(header).to_bytes(8, "little")
    yield header
    for name in arrays:
        begin, end = entries[name]["data_offsets"]
        # an array of no elements has no bytes, and no memory that could be looked at
        if begin < end:
            yield _bytes_of(arrays[name])


def _entries(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Return what the header says: type, shape and place of every array."""
    entries: dict[str, Any] = {}
    foreign: dict[str, str] = {}
    offset = 0
    for name, array in arrays.items():
        if array.dtype.name not in _DTYPES:
            foreign[name] = array.dtype.name
        stored = _DTYPES[_stored_dtype(array.dtype).name]
        ends = [offset, offset + array.nbytes]
        entries[name] = {"dtype": stored, "shape": list(array.shape), "data_offsets": ends}
        offset = ends[1]
    if foreign:
        entries["__metadata__"] = {_NAMES_KEY: json.dumps(foreign)}
    return entries


def in_pieces(
    arrays: Mapping[str, NDArray[Any]], name: str, piece_bytes: int
) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield an array as some of its rows at a time, and the number of the first; a small one as it is."""
    if isinstance(arrays, StoredArrays):
        yield from arrays.pieces(name, piece_bytes)
        return
    array = arrays[name]
    for start, stop in _cuts(array.shape, array.nbytes, piece_bytes):
        yield start, array if stop is None else array[start:stop]


class StoredArrays(Mapping[str, NDArray[Any]]):
    """The arrays of a file, read when they are asked for."""

    def __init__(self, file: Path) -> None:
        from safetensors import safe_open

        # the library checks what the header says, and then it can be believed
        with safe_open(str(file), framework="numpy"), file.open("rb") as opened:
            header_bytes = int.from_bytes(opened.read(8), "little")
            self._entries: dict[str, Any] = json.loads(opened.read(header_bytes))
        self._file = file
        self._start = 8 + header_bytes
        self._foreign = json.loads(self._entries.pop("__metadata__", {}).get(_NAMES_KEY, "{}"))

    def __getitem__(self, name: str) -> NDArray[Any]:
        begin, end = self._entries[name]["data_offsets"]
        (_, array), *_ = self.pieces(name, end - begin)
        return array

    def pieces(self, name: str, piece_bytes: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Read an array as `in_pieces` gives it."""
        entry = self._entries[name]
        (begin, end), shape = entry["data_offsets"], tuple(entry["shape"])
        dtype = np.dtype(_STORED[entry["dtype"]]).newbyteorder("<")
        with self._file.open("rb") as opened:
            opened.seek(self._start + begin)
            for start, stop in _cuts(shape, end - begin, piece_bytes):
                wanted = shape if stop is None else (stop - start, *shape[1:])
                array = np.fromfile(opened, dtype, math.prod(wanted)).reshape(wanted)
                yield start, array.view(np.dtype(self._foreign[name])) if name in self._foreign else array

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _cuts(shape: tuple[int, ...], n_bytes: int, piece_bytes: int) -> Iterator[tuple[int, int | None]]:
    """Yield first and last row of every piece; no last row for an array that stays whole."""
    rows = piece_bytes * shape[0] // n_bytes if shape and n_bytes else 0
    if not 0 < rows < (shape or (0,))[0]:
        yield 0, None
        return
    for start in range(0, shape[0], rows):
        yield start, min(start + rows, shape[0])


def _stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.name in _DTYPES:
        return dtype
    if dtype.hasobject or dtype.itemsize not in _STORED_AS:
        raise TypeError(f"an array of {dtype} cannot be kept: only numbers can")
    return np.dtype(_STORED_AS[dtype.itemsize])


def _bytes_of(array: NDArray[Any]) -> Any:
    stored = _stored_dtype(array.dtype)
    flat = np.ascontiguousarray(array).reshape(-1).view(stored)
    little = flat.astype(stored.newbyteorder("<"), copy=False)
    return little.view(np.uint8).data
