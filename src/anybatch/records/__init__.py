"""Read, write, check and decode record files."""

from anybatch.records.columns import BytesColumn, Column, RaggedColumn, row
from anybatch.records.features import Bytes, Feature, Numbers, Ragged, Raw, Sequence, resolve
from anybatch.records.index import build_index, keep_index, load_index, load_or_build
from anybatch.records.infer import infer_features, infer_from
from anybatch.records.ledger import Ledger
from anybatch.records.record_set import Columns, RecordSet
from anybatch.records.shards import Paths, Shard, find_shards
from anybatch.records.write import write

__all__ = [
    "Bytes",
    "BytesColumn",
    "Column",
    "Columns",
    "Feature",
    "Ledger",
    "Numbers",
    "Paths",
    "Ragged",
    "RaggedColumn",
    "Raw",
    "RecordSet",
    "Sequence",
    "Shard",
    "build_index",
    "find_shards",
    "infer_features",
    "infer_from",
    "keep_index",
    "load_index",
    "load_or_build",
    "resolve",
    "row",
    "write",
]
