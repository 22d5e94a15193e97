"""Describe a stream of records, then run it."""

from anybatch.stream.arrays import from_arrays
from anybatch.stream.read import read
from anybatch.stream.sources import concat, mix
from anybatch.stream.stream import Stream, identity_of

__all__ = ["Stream", "concat", "from_arrays", "identity_of", "mix", "read"]
