"""Arrays by name in a safetensors file: written piece by piece, read one by one.

The safetensors library writes from copies of all arrays at once, which a process near its limit cannot
afford; its format is a header and the arrays' bytes, and it reads what is written here.
"""

import json
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


class StoredArrays(Mapping[str, NDArray[Any]]):
    """The arrays of a file, each read when it is asked for."""

    def __init__(self, file: Path) -> None:
        from safetensors import safe_open

        self._open: Any = lambda: safe_open(str(file), framework="numpy")
        with self._open() as opened:
            self._names = list(opened.keys())
            self._foreign = json.loads((opened.metadata() or {}).get(_NAMES_KEY, "{}"))

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        with self._open() as opened:
            array: NDArray[Any] = opened.get_tensor(name)
        return array.view(np.dtype(self._foreign[name])) if name in self._foreign else array

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


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
