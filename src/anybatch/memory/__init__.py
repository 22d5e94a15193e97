"""What the machine allows, what a process holds, and how the peak grows with the batch."""

from anybatch.memory.ceilings import allocations_may_fail
from anybatch.memory.glibc import (
    KEPT_FACTOR,
    give_back_freed,
    keep_freed_blocks,
    make_peaks_predictable,
    predictable_environment,
)
from anybatch.memory.groups import Group, groups_of
from anybatch.memory.headroom import Headroom
from anybatch.memory.held import (
    Held,
    children_of,
    fairly_held_bytes,
    held,
    held_by_tree,
    held_together,
    tree_of,
)
from anybatch.memory.kernel_files import ROOT, number_in, numbers_by_name, text_of
from anybatch.memory.limits import Allowance, allowance, cacheable_bytes
from anybatch.memory.model import PeakModel, Peaks, Probe, fitted
from anybatch.memory.peak import PeakWatch
from anybatch.memory.silence import (
    ONEDNN_VARIABLE,
    PRODUCTS_VARIABLE,
    SilenceWatch,
    are_told,
    loud_environment,
)

__all__ = [
    "KEPT_FACTOR",
    "ONEDNN_VARIABLE",
    "PRODUCTS_VARIABLE",
    "ROOT",
    "Allowance",
    "Group",
    "Headroom",
    "Held",
    "PeakModel",
    "PeakWatch",
    "Peaks",
    "Probe",
    "SilenceWatch",
    "allocations_may_fail",
    "allowance",
    "are_told",
    "cacheable_bytes",
    "children_of",
    "fairly_held_bytes",
    "fitted",
    "give_back_freed",
    "groups_of",
    "held",
    "held_by_tree",
    "held_together",
    "keep_freed_blocks",
    "loud_environment",
    "make_peaks_predictable",
    "number_in",
    "numbers_by_name",
    "predictable_environment",
    "text_of",
    "tree_of",
]
