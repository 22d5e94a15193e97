"""Read, write, check and decode record files."""

from anybatch.records.aligned import aligned_copy, aligned_empty, aligned_rows, is_aligned
from anybatch.records.assemble import int64s
from anybatch.records.columns import BytesColumn, Column, RaggedColumn, row, take_rows
from anybatch.records.features import Bytes, Feature, Image, Numbers, Ragged, Raw, Sequence, resolve
from anybatch.records.index import build_index, keep_index, load_index, load_or_build
from anybatch.records.infer import infer_features, infer_from
from anybatch.records.inspect import FeatureReport, Finding, Inspection, inspect
from anybatch.records.ledger import Ledger
from anybatch.records.overview import Overview, ShardReport
from anybatch.records.record_set import Columns, RecordSet
from anybatch.records.repair import Repaired, repair
from anybatch.records.reshard import Resharded, reshard
from anybatch.records.seen import Seen
from anybatch.records.shards import Paths, Shard, find_files, find_shards
from anybatch.records.sizes import Sizes
from anybatch.records.threads import give_way, usable_cores, work_until
from anybatch.records.verify import index_shards, verify
from anybatch.records.write import write

__all__ = [
    "Bytes",
    "BytesColumn",
    "Column",
    "Columns",
    "Feature",
    "FeatureReport",
    "Finding",
    "Image",
    "Inspection",
    "Ledger",
    "Numbers",
    "Overview",
    "Paths",
    "Ragged",
    "RaggedColumn",
    "Raw",
    "RecordSet",
    "Repaired",
    "Resharded",
    "Seen",
    "Sequence",
    "Shard",
    "ShardReport",
    "Sizes",
    "aligned_copy",
    "aligned_empty",
    "aligned_rows",
    "build_index",
    "find_files",
    "find_shards",
    "give_way",
    "index_shards",
    "infer_features",
    "infer_from",
    "inspect",
    "int64s",
    "is_aligned",
    "keep_index",
    "load_index",
    "load_or_build",
    "repair",
    "reshard",
    "resolve",
    "row",
    "take_rows",
    "usable_cores",
    "verify",
    "work_until",
    "write",
]
