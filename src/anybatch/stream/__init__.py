"""Describe a stream of records, then run it."""

from anybatch.stream.arrays import from_arrays
from anybatch.stream.read import read
from anybatch.stream.stream import Stream, concat, mix

__all__ = ["Stream", "concat", "from_arrays", "mix", "read"]
