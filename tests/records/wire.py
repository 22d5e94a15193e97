"""Protobuf messages composed byte by byte, in every way that the wire format knows and in some it forbids."""

import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

Option = TypeVar("Option")
Compose = Callable[["Choices"], bytes]

VARINT, FIXED64, DELIMITED, GROUP, END_GROUP, FIXED32 = range(6)
NAMES = ("a", "", "é")
NO_UTF8 = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xc3")


def varint(value: int, surplus: int = 0) -> bytes:
    """Return a number in base 128, with so many bytes more than it needs."""
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(value & 0x7F)
    digits += [0] * surplus
    return bytes([*(digit | 0x80 for digit in digits[:-1]), digits[-1]])


def tag(number: int, wire_type: int) -> bytes:
    """Return what a field begins with."""
    return varint(number << 3 | wire_type)


def delimited(number: int, body: bytes) -> bytes:
    """Return a field that holds bytes or a message."""
    return tag(number, DELIMITED) + varint(len(body)) + body


def group(number: int, body: bytes) -> bytes:
    """Return a group: a field that lasts until it is said to end."""
    return tag(number, GROUP) + body + tag(number, END_GROUP)


def groups(depth: int) -> bytes:
    """Return groups in groups."""
    return tag(9, GROUP) * depth + tag(9, END_GROUP) * depth


class Choices:
    """Decisions read off some bytes. Hypothesis makes the bytes up; 0 decides for what is simplest.

    Drawing each decision by itself took 10 ms a message, and nearly all messages were beyond repair.
    """

    def __init__(self, source: bytes) -> None:
        self._source = iter(source)

    def below(self, limit: int) -> int:
        return next(self._source, 0) % limit

    def seldom(self, one_in: int) -> bool:
        return next(self._source, 0) >= 256 - 256 // one_in

    def pick(self, options: Sequence[Option]) -> Option:
        return options[self.below(len(options))]

    def take(self, count: int) -> bytes:
        return bytes(next(self._source, 0) for _ in range(count))

    def some(self, compose: Compose, *, most: int) -> bytes:
        count = 0 if self.seldom(10) else 1 + self.below(most)
        return b"".join(compose(self) for _ in range(count))


def any_varint(c: Choices) -> bytes:
    if c.seldom(40):
        # the tenth byte has room for one bit, and an eleventh is not allowed
        return c.pick([b"\xff" * 9 + bytes([c.below(128)]), b"\xff" * 10 + b"\0"])
    value = int.from_bytes(c.take(c.pick([1, 2, 8])), "little")
    return varint(value, c.below(10) if c.seldom(16) else 0)


def field(c: Choices, number: int, body: bytes) -> bytes:
    """Return a delimited field, seldom with surplus bytes or with a length that lies."""
    if not c.seldom(32):
        return delimited(number, body)
    off = c.pick([-1, 1, 2**31 - 1, 2**31, 2**32]) if c.seldom(8) else 0
    length = varint(max(0, len(body) + off), c.below(6))
    return varint(number << 3 | DELIMITED, c.below(6)) + length + body


def unknown(c: Choices, depth: int = 3) -> bytes:
    """Return a field of any wire type, also under a number that the message knows with another one."""
    number = c.pick([9, 1, 2, 3, 4, 16, 2**29 - 1])
    wire_type = c.pick([VARINT, FIXED64, DELIMITED, FIXED32, GROUP])
    if wire_type == GROUP:
        # upb minds the number 0, but not in a group
        inner = [unknown(c, depth - 1) for _ in range(c.below(3))] if depth else []
        zero = tag(0, VARINT) + b"\0" if c.seldom(8) else b""
        return group(number, b"".join(inner) + zero)
    bodies: dict[int, Compose] = {
        VARINT: any_varint,
        FIXED64: lambda c: c.take(8),
        FIXED32: lambda c: c.take(4),
        DELIMITED: lambda c: varint(2) + c.take(2),
    }
    return tag(number, wire_type) + bodies[wire_type](c)


def forbidden(c: Choices) -> bytes:
    return c.pick(
        [
            tag(0, VARINT) + b"\0",
            tag(c.below(10), c.pick([END_GROUP, 6, 7])),
            tag(9, GROUP) + tag(8, END_GROUP),
            groups(90 + c.below(20)),
            varint(2**29 << 3) + b"\0",
            b"\x88\x80\x80\x80\x10\0",
        ]
    )


def part(c: Choices, known: Compose) -> bytes:
    """Return a known field, seldom another one."""
    if not c.seldom(20):
        return known(c)
    return forbidden(c) if c.seldom(12) else unknown(c)


def message(c: Choices, known: Compose, *, most: int) -> bytes:
    return c.some(lambda c: part(c, known), most=most)


def one_float(c: Choices) -> bytes:
    return c.pick([c.take(4), struct.pack("<f", c.below(100)), b"\x01\0\x80\x7f", b"\xff\xff\xff\xff"])


def float_list(c: Choices) -> bytes:
    def run(c: Choices) -> bytes:
        if c.below(3) == 2:
            return tag(1, FIXED32) + one_float(c)
        return field(c, 1, c.some(one_float, most=4) + (b"?" if c.seldom(64) else b""))

    return message(c, run, most=3)


def int_list(c: Choices) -> bytes:
    def run(c: Choices) -> bytes:
        return tag(1, VARINT) + any_varint(c) if c.below(3) == 2 else field(c, 1, c.some(any_varint, most=4))

    return message(c, run, most=3)


def bytes_list(c: Choices) -> bytes:
    return message(c, lambda c: field(c, 1, c.take(c.below(4))), most=3)


LISTS = {1: bytes_list, 2: float_list, 3: int_list}


def feature(c: Choices) -> bytes:
    """Return a feature: mostly of one kind, in one or several pieces."""
    kind = c.pick([3, 2, 1])

    def piece(c: Choices) -> bytes:
        number = c.pick([1, 2, 3]) if c.seldom(6) else kind
        return field(c, number, LISTS[number](c))

    return message(c, piece, most=2)


def feature_list(c: Choices) -> bytes:
    kind = c.pick([3, 2, 1])

    def step(c: Choices) -> bytes:
        if c.seldom(6):
            return field(c, 1, feature(c))
        return field(c, 1, message(c, lambda c: field(c, kind, LISTS[kind](c)), most=2))

    return message(c, step, most=4)


def entry(c: Choices, value: Compose) -> bytes:
    name = c.pick(NO_UTF8) if c.seldom(50) else c.pick(NAMES).encode()
    key = field(c, 1, name)
    if not c.seldom(4):
        return key + field(c, 2, value(c))
    # several of each in any order, one or both of them missing, something unknown between
    return message(c, lambda c: c.pick([key, field(c, 2, value(c)), field(c, 1, b"a")]), most=4)


def map_of(c: Choices, value: Compose) -> bytes:
    return message(c, lambda c: field(c, 1, entry(c, value)), most=3)


def example(c: Choices) -> bytes:
    return message(c, lambda c: field(c, 1, map_of(c, feature)), most=2)


def sequence_example(c: Choices) -> bytes:
    def either(c: Choices) -> bytes:
        return field(c, 1, map_of(c, feature)) if c.seldom(4) else field(c, 2, map_of(c, feature_list))

    return message(c, either, most=3)


def mutated(c: Choices, old: bytes) -> bytes:
    """Return a message with some bytes changed, put in, taken out, or all behind one cut off."""
    for _ in range(1 + c.below(2)):
        at, byte = c.below(256) * len(old) // 256, c.take(1)
        old = c.pick(
            [old[:at] + byte + old[at + 1 :], old[:at] + byte + old[at:], old[:at] + old[at + 1 :], old[:at]]
        )
    return old


def messages(compose: Compose, *, mutate: bool) -> st.SearchStrategy[bytes]:
    """Return messages, as they were composed or damaged afterwards."""

    def made(source: bytes, damage: bytes) -> bytes:
        return mutated(Choices(damage), compose(Choices(source))) if mutate else compose(Choices(source))

    return st.builds(made, st.binary(min_size=40, max_size=300), st.binary(min_size=6, max_size=6))
