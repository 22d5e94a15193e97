"""Hashes of values that are the same tomorrow: of functions too, by what they do and not by their names.

Two equal hashes mean equal values as far as can be told by looking: code, constants, defaults, closures, and
the globals that code names, followed into functions and classes of the user's own. Libraries count by their
version, those that tell none by their files. What cannot be looked into has no hash.
"""

import dis
import enum
import functools
import hashlib
import re
import struct
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np

from anybatch._native import masked_crc32c
from anybatch.records import BytesColumn, Feature, RaggedColumn

Parts: TypeAlias = "Callable[[Hasher, Any], list[bytes]]"

_BLOCK_BYTES = 1 << 20
_BY_TEXT = (
    date,
    time,
    timedelta,
    Decimal,
    Fraction,
    UUID,
    PurePath,
    Feature,
    np.dtype,
    range,
    slice,
    complex,
)
_CODE_FIELDS = (
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_flags",
    "co_code",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_exceptiontable",
)
_OF_EVERY_CLASS = {
    "__abstractmethods__",
    "__annotations__",
    "__dataclass_fields__",
    "__dataclass_params__",
    "__dict__",
    "__doc__",
    "__firstlineno__",
    "__match_args__",
    "__module__",
    "__qualname__",
    "__static_attributes__",
    "__weakref__",
    "_abc_impl",
}
_SAY_NOTHING = {"EXTENDED_ARG", "CACHE", "NOP", "PUSH_NULL"}
_LRU_CACHE = type(functools.lru_cache(len))
_LIBRARY_FOLDERS = {"site-packages", "dist-packages"}

_kinds: list[tuple[tuple[type, ...], Parts]] = []


class Unstable(Exception):
    """Something that cannot be hashed so that the same thing has the same hash tomorrow."""

    def __init__(self, what: str, where: tuple[str, ...] = ()) -> None:
        super().__init__(what, where)
        self.what = what
        self.where = where

    def __str__(self) -> str:
        return ", ".join([self.what, *reversed(self.where)])


def parts_of(*kinds: type) -> Callable[[Parts], Parts]:
    """Register how values of some types are taken apart; the first that fits counts."""

    def register(parts: Parts) -> Parts:
        _kinds.append((kinds, parts))
        return parts

    return register


class Hasher:
    """Hashes of values out of the hashes of their parts; without `versions`, libraries by name alone."""

    def __init__(self, *, versions: bool = True) -> None:
        self._versions = versions
        self._where: list[str] = []
        self._active: list[int] = []
        # with the values: one that is gone could leave its id to another
        self._known: dict[int, tuple[bytes, Any]] = {}

    def digest(self, value: Any, name: str = "") -> bytes:
        """Return the hash of any value; `name` is what an error calls it."""
        plain = _plain(value)
        if plain is not None:
            return _hash(type(value).__name__.encode(), plain)
        if id(value) in self._known:
            return self._known[id(value)][0]
        if id(value) in self._active:
            # something that holds itself: by how far up
            return _hash(b"above", str(len(self._active) - self._active.index(id(value))).encode())
        self._active.append(id(value))
        self._where.append(name)
        try:
            found = _hash(*self._parts(value))
        finally:
            self._active.pop()
            self._where.pop()
        self._known[id(value)] = found, value
        return found

    def all(self, values: Iterable[Any]) -> list[bytes]:
        """Return the hashes of some values."""
        return [self.digest(value) for value in values]

    def by_name(self, values: Mapping[str, Any], where: str) -> list[bytes]:
        """Return names and hashes in the order of the names."""
        found = []
        for name, value in sorted(values.items()):
            found += [name.encode(), self.digest(value, f"`{name}` of {where}")]
        return found

    def version_of(self, module_name: str) -> bytes:
        """Return which version of a library a module belongs to; of one that tells none, its file's hash."""
        if not self._versions:
            return b""
        name = module_name.partition(".")[0]
        told = getattr(sys.modules.get(name), "__version__", None)
        if told is not None or name in sys.stdlib_module_names:
            return str(told or "").encode()
        return _hash_of_file(getattr(sys.modules.get(module_name), "__file__", None))

    def unstable(self, what: str) -> Unstable:
        """Return the error for something here that has no hash."""
        return Unstable(what, tuple(name for name in self._where if name))

    def _parts(self, value: Any) -> list[bytes]:
        for kinds, parts in _kinds:
            if isinstance(value, kinds):
                return [parts.__name__.encode(), *parts(self, value)]
        return _instance(self, value)


@functools.cache
def _hash_of_file(path: str | None) -> bytes:
    try:
        return b"" if path is None else hashlib.blake2b(Path(path).read_bytes(), digest_size=16).digest()
    except OSError:
        return b""


def _plain(value: Any) -> bytes | None:
    """Return values without parts as bytes: equal ones alike, others not."""
    if value is None or value is Ellipsis or value is NotImplemented or type(value) in {bool, int}:
        return repr(value).encode()
    if type(value) is float:
        return struct.pack("<d", value)
    if type(value) is str:
        return value.encode(errors="surrogatepass")
    return bytes(value) if type(value) in {bytes, bytearray} else None


def _hash(*parts: bytes) -> bytes:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(struct.pack("<Q", len(part)))
        whole.update(part)
    return whole.digest()


@parts_of(enum.Enum)
def _enum(hasher: Hasher, member: enum.Enum) -> list[bytes]:
    return [hasher.digest(type(member)), member.name.encode(), hasher.digest(member.value)]


@parts_of(*_BY_TEXT)
def _by_text(_: Hasher, value: Any) -> list[bytes]:
    return [type(value).__name__.encode(), repr(value).encode()]


@parts_of(tuple, list)
def _sequence(hasher: Hasher, values: Iterable[Any]) -> list[bytes]:
    return [type(values).__name__.encode(), *hasher.all(values)]


@parts_of(dict, types.MappingProxyType)
def _mapping(hasher: Hasher, values: Mapping[Any, Any]) -> list[bytes]:
    default = hasher.digest(getattr(values, "default_factory", None))
    return [type(values).__name__.encode(), default, *hasher.all(values.items())]


@parts_of(set, frozenset)
def _set(hasher: Hasher, values: Iterable[Any]) -> list[bytes]:
    # strings come out of a set in another order every day
    return sorted(hasher.all(values))


@parts_of(np.ndarray)
def _array(hasher: Hasher, array: np.ndarray[Any, Any]) -> list[bytes]:
    kind = [array.dtype.str.encode(), str(array.shape).encode()]
    if array.dtype.hasobject:
        return [*kind, *hasher.all(array.reshape(-1).tolist())]
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)
    starts = range(0, flat.nbytes, _BLOCK_BYTES)
    # not the array's own bytes through SHA-256: ten times slower, and nobody forges a cache
    checks = [masked_crc32c(flat[at : at + _BLOCK_BYTES].data) for at in starts]
    return [*kind, struct.pack(f"<{len(checks)}I", *checks)]


@parts_of(np.generic)
def _scalar(_: Hasher, value: np.generic) -> list[bytes]:
    return [value.dtype.str.encode(), value.tobytes()]


@parts_of(BytesColumn, RaggedColumn)
def _column(hasher: Hasher, column: BytesColumn | RaggedColumn) -> list[bytes]:
    return hasher.all([column.values, column.offsets, getattr(column, "shape", ())])


@parts_of(np.ufunc)
def _ufunc(hasher: Hasher, function: np.ufunc) -> list[bytes]:
    if getattr(np, function.__name__, None) is not function:
        raise hasher.unstable(f"the ufunc {function.__name__}")
    return [function.__name__.encode(), hasher.version_of("numpy")]


@parts_of(re.Pattern)
def _pattern(hasher: Hasher, pattern: re.Pattern[Any]) -> list[bytes]:
    return hasher.all([pattern.pattern, pattern.flags])


@parts_of(functools.partial)
def _partial(hasher: Hasher, partial: functools.partial[Any]) -> list[bytes]:
    return hasher.all([partial.func, partial.args, partial.keywords])


@parts_of(types.CodeType)
def _code(hasher: Hasher, code: types.CodeType) -> list[bytes]:
    settings = tuple(getattr(code, name, None) for name in _CODE_FIELDS)
    return [hasher.digest(settings), *hasher.all(code.co_consts)]


@parts_of(types.FunctionType)
def _function(hasher: Hasher, function: types.FunctionType) -> list[bytes]:
    name, module = function.__qualname__, function.__module__ or ""
    library = _is_library(module)
    if library and _reached(sys.modules.get(module), tuple(name.split("."))) is function:
        return [_library_name(hasher, function)]
    variables = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    own = [
        hasher.digest(function.__defaults__, f"a default of {name}"),
        hasher.digest(function.__kwdefaults__, f"a default of {name}"),
        *(hasher.digest(_content(cell), f"closure variable `{one}` of {name}") for one, cell in variables),
    ]
    if library:
        return [_library_name(hasher, function), *own]
    return [hasher.digest(function.__code__, name), *own, *_globals_of(hasher, function)]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return "nothing yet"


def _globals_of(hasher: Hasher, function: types.FunctionType) -> list[bytes]:
    found = []
    for name, path in sorted(set(_global_names(function.__code__, function.__globals__))):
        text, value = ".".join([name, *path]), function.__globals__[name]
        owner = _reached(value, path[:-1])
        if path and isinstance(owner, types.ModuleType) and _is_library(owner.__name__):
            found += [text.encode(), owner.__name__.encode(), hasher.version_of(owner.__name__)]
        else:
            where = f"global `{text}` of {function.__qualname__}"
            found += [text.encode(), hasher.digest(_reached(value, path), where)]
    return found


def _global_names(code: types.CodeType, known: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the globals that code names; of modules, which of their attributes."""
    at: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        name, does = instruction.argval, instruction.opname
        if does in _SAY_NOTHING:
            continue
        if at and does in {"LOAD_ATTR", "LOAD_METHOD"} and _is_module(known, at):
            at = (*at, name)
            continue
        if at:
            yield at[0], at[1:]
        at = (name,) if does in {"LOAD_GLOBAL", "LOAD_NAME"} and name in known else ()
        if does == "IMPORT_NAME" and not _is_library(name):
            raise Unstable(f"what `import {name}` brings", (code.co_qualname,))
    if at:
        yield at[0], at[1:]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant, known)


def _is_module(known: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    return isinstance(_reached(known[path[0]], path[1:]), types.ModuleType)


def _reached(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = getattr(value, name, None)
    return value


@parts_of(types.MethodType)
def _method(hasher: Hasher, method: types.MethodType) -> list[bytes]:
    return hasher.all([method.__func__, method.__self__])


@parts_of(staticmethod, classmethod, _LRU_CACHE)
def _wrapper(hasher: Hasher, wrapper: Any) -> list[bytes]:
    return [type(wrapper).__name__.encode(), hasher.digest(wrapper.__wrapped__)]


@parts_of(property)
def _property(hasher: Hasher, one: property) -> list[bytes]:
    return hasher.all([one.fget, one.fset, one.fdel])


@parts_of(types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
def _builtin(hasher: Hasher, function: Any) -> list[bytes]:
    owner = getattr(function, "__self__", None)
    bound = owner is not None and not isinstance(owner, types.ModuleType)
    return [_library_name(hasher, function), hasher.digest(owner) if bound else b""]


@parts_of(types.ModuleType)
def _module(hasher: Hasher, module: types.ModuleType) -> list[bytes]:
    if not _is_library(module.__name__):
        raise hasher.unstable(f"the module {module.__name__} as a whole")
    return [module.__name__.encode(), hasher.version_of(module.__name__)]


@parts_of(type)
def _class(hasher: Hasher, one: type) -> list[bytes]:
    if _is_library(one.__module__):
        return [_library_name(hasher, one)]
    content = {
        name: value
        for name, value in vars(one).items()
        if name not in _OF_EVERY_CLASS and not isinstance(value, types.MemberDescriptorType)
    }
    bases = hasher.all(one.__bases__)
    return [one.__qualname__.encode(), *bases, *hasher.by_name(content, f"class {one.__qualname__}")]


def _instance(hasher: Hasher, value: Any) -> list[bytes]:
    kind = type(value)
    if _is_library(kind.__module__):
        raise hasher.unstable(f"an object of type {kind.__module__}.{kind.__qualname__}")
    state = dict(getattr(value, "__dict__", {}))
    for one in kind.__mro__:
        slots = vars(one).get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        state |= {name: getattr(value, name) for name in names if hasattr(value, name)}
    return [b"instance", hasher.digest(kind), *hasher.by_name(state, f"a {kind.__qualname__}")]


@functools.cache
def _is_library(module_name: str) -> bool:
    """Return whether a module is not the user's own: then what it does is known by its version."""
    top = module_name.partition(".")[0]
    if top == "__main__":
        return False
    if top in sys.stdlib_module_names or top == "anybatch":
        return True
    try:
        found = find_spec(top)
    except (ImportError, ValueError):
        return False
    places = [] if found is None else [found.origin or "", *(found.submodule_search_locations or ())]
    return any(_LIBRARY_FOLDERS & set(Path(place).parts) for place in places)


def _library_name(hasher: Hasher, value: Any) -> bytes:
    module = getattr(value, "__module__", None) or ""
    name = getattr(value, "__qualname__", type(value).__name__)
    return f"{module}.{name} ".encode() + hasher.version_of(module)
