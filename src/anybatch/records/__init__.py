"""Read, write, check and decode record files."""

from anybatch.records.aligned import ALIGNMENT_BYTES, aligned_copy, aligned_empty, aligned_rows, is_aligned
from anybatch.records.assemble import int64s
from anybatch.records.columns import BytesColumn, Column, PaddedColumn, RaggedColumn, row, take_rows
from anybatch.records.features import (
    Bytes,
    Feature,
    Image,
    Numbers,
    Padded,
    Ragged,
    Raw,
    Sequence,
    resolve,
)
from anybatch.records.index import build_index, keep_index, load_index, load_or_build, sidecar_beside
from anybatch.records.infer import infer_features, infer_from
from anybatch.records.inspect import FeatureReport, Finding, Inspection, Look, inspect, look_into
from anybatch.records.ledger import Ledger
from anybatch.records.overview import Overview, ShardReport
from anybatch.records.reading import Bounds
from anybatch.records.record_set import Columns, RecordSet
from anybatch.records.repair import Repaired, repair, repair_shard, target_names
from anybatch.records.reshard import Resharded, check_arguments, new_names, reshard, warn_of_mixing
from anybatch.records.reshard_parts import (
    Dealing,
    Part,
    SourceFacts,
    dealing,
    parts_of,
    source_facts,
    unpacked_facts,
    write_part,
)
from anybatch.records.sampled import sizes_and_samples
from anybatch.records.seen import Seen, seen_in
from anybatch.records.shards import Paths, Shard, find_files, find_shards, named_compression
from anybatch.records.sizes import Sizes, joined_sizes
from anybatch.records.threads import Each, give_way, on_threads, usable_cores, work_until
from anybatch.records.verify import index_shards, verify
from anybatch.records.whole_files import refuse_existing, sync_folders
from anybatch.records.write import even_counts, write

__all__ = [
    "ALIGNMENT_BYTES",
    "Bounds",
    "Bytes",
    "BytesColumn",
    "Column",
    "Columns",
    "Dealing",
    "Each",
    "Feature",
    "FeatureReport",
    "Finding",
    "Image",
    "Inspection",
    "Ledger",
    "Look",
    "Numbers",
    "Overview",
    "Padded",
    "PaddedColumn",
    "Part",
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
    "SourceFacts",
    "aligned_copy",
    "aligned_empty",
    "aligned_rows",
    "build_index",
    "check_arguments",
    "dealing",
    "even_counts",
    "find_files",
    "find_shards",
    "give_way",
    "index_shards",
    "infer_features",
    "infer_from",
    "inspect",
    "int64s",
    "is_aligned",
    "joined_sizes",
    "keep_index",
    "load_index",
    "load_or_build",
    "look_into",
    "named_compression",
    "new_names",
    "on_threads",
    "parts_of",
    "refuse_existing",
    "repair",
    "repair_shard",
    "reshard",
    "resolve",
    "row",
    "seen_in",
    "sidecar_beside",
    "sizes_and_samples",
    "source_facts",
    "sync_folders",
    "take_rows",
    "target_names",
    "unpacked_facts",
    "usable_cores",
    "verify",
    "warn_of_mixing",
    "work_until",
    "write",
    "write_part",
]
