"""A batch that does not fit into the memory there is: who finishes, with which weights, how fast."""

from functools import partial

from benchmarks.registry import Case, Contender, Theme

PLAIN = Contender("model.fit", "survival:plain", "peer", "records", "batch 512")
HALVED = Contender(
    "model.fit, except: halve", "survival:halved", "peer", "records", "the articles' way: another batch size"
)
BY_HAND = Contender(
    "model.fit, accumulation",
    "survival:accumulated",
    "peer",
    "records",
    "gradient_accumulation_steps=8 of 64, found by trying",
)
PLANNED = Contender(
    "ab.fit", "survival:planned", "ours", "records", "batch 512, under the limit that is there"
)
WHOLE_FIRST = Contender(
    "ab.fit, whole first",
    "survival:whole_first",
    "ours",
    "records",
    "told to begin with whole batches",
)
SUPERVISED = Contender(
    "anybatch run",
    "survival:supervised",
    "ours",
    "records",
    "the same; imports and restarts are timed",
)
NO_LIMIT = Contender(
    "model.fit, no limit",
    "survival:unlimited",
    "limit",
    "records",
    "not a contender: all memory",
)
Survival = partial(Case, measured="survival", rounds=3, check="always", promised={"records": 4_096})

THEME = Theme(
    "survival",
    "Training a batch of 512 that does not fit",
    (
        Survival(
            "address_space",
            "an address space too small for the batch (RLIMIT_AS)",
            "",
            "records",
            (PLAIN, HALVED, BY_HAND, PLANNED, WHOLE_FIRST, NO_LIMIT),
            quick=False,
        ),
        Survival(
            "group",
            "a memory group too small for the batch, as a container is",
            "",
            "records",
            (PLAIN, HALVED, BY_HAND, PLANNED, SUPERVISED, NO_LIMIT),
        ),
    ),
)
