"""Every code a finding can have. A code keeps its meaning for ever; `docs/codes` has a page for each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """What one code stands for."""

    code: str
    family: str
    title: str


_TITLES: dict[str, dict[str, str]] = {
    "files": {
        "AB101": "damaged records",
        "AB102": "a file that was cut off",
        "AB103": "shards without records",
        "AB104": "shards of very different size",
        "AB105": "shards compressed in different ways",
        "AB106": "features that differ between shards",
        "AB107": "files that cannot be read",
        "AB108": "files that are no TFRecords",
        "AB109": "data that was never checked in full",
        "AB110": "records that are no Examples",
    },
    "values": {
        "AB201": "a feature is missing in some records",
        "AB202": "a feature of several kinds",
        "AB203": "a feature of another length in some records",
        "AB204": "NaN or infinity",
        "AB205": "a feature that never changes",
        "AB206": "inputs of very different scale",
        "AB207": "labels out of range",
        "AB208": "a rare class",
        "AB209": "one class only",
        "AB210": "repeated records",
        "AB211": "records in both data sets",
    },
    "order": {
        "AB301": "records sorted or clustered by label",
        "AB302": "a shuffle buffer that does not undo the order",
        "AB303": "records in the order of time",
    },
    "batch": {
        "AB401": "a batch that does not fit",
        "AB402": "a batch larger than the data",
        "AB403": "a last batch of one record",
        "AB404": "records of very different size",
        "AB405": "data larger than memory",
        "AB406": "a shuffle buffer larger than memory",
        "AB407": "steps_per_epoch that does not match",
        "AB408": "a batch that fits only in parts",
        "AB409": "prefetched batches larger than memory",
    },
    "training": {
        "AB501": "no feature fits the model's input",
        "AB502": "a model that cannot be split exactly",
        "AB503": "fewer outputs than classes",
        "AB504": "a batch far from the gradient noise scale",
        "AB505": "the first batch does not pass",
        "AB506": "an input that cannot keep up",
        "AB507": "a map that depends on who else is in the batch",
        "AB508": "memory that grows with every step",
    },
    "script: order": {
        "AB601": "batches are made without shuffling",
        "AB602": "whole batches are shuffled, not records",
        "AB603": "the shuffle buffer is smaller than the data",
        "AB604": "take comes after repeat",
        "AB605": "repeat comes before shuffle",
        "AB606": "a split by take and skip changes every epoch",
        "AB607": "an endless data set without steps_per_epoch",
    },
    "script: pipeline": {
        "AB611": "random augmentation is cached",
        "AB612": "a cache in memory",
        "AB613": "a shuffled order is cached",
        "AB621": "records are parsed one by one",
        "AB622": "nothing is prefetched",
        "AB623": "interleave runs over records instead of files",
        "AB624": "map runs on one thread",
        "AB625": "a whole data set becomes constants",
        "AB626": "errors in the data are dropped silently",
        "AB627": "a whole data set is made a list",
    },
    "script: training loop": {
        "AB701": "accumulated slices overlap",
        "AB702": "the loss does not use the labels",
        "AB703": "accumulated gradients are never divided",
        "AB704": "what is left at the end is dropped",
        "AB705": "labels and predictions differ in rank",
        "AB706": "the loss is not reduced to one number",
        "AB707": "training=True is missing",
    },
    "script: fits and failures": {
        "AB801": "an error that running out of memory does not raise",
        "AB802": "every error is swallowed",
        "AB803": "a retry inside the except block",
        "AB804": "a smaller batch without keeping the effective one",
        "AB805": "one model is trained on across fits that are compared",
        "AB806": "no batch size taken for a full batch",
        "AB807": "batch_size is ignored for a data set",
        "AB808": "Keras' own gradient accumulation",
    },
}

CODES: dict[str, Code] = {
    code: Code(code, family, title) for family, titles in _TITLES.items() for code, title in titles.items()
}
"""Code → what it stands for, by family."""
