"""The same update as the whole batch: how far the weights are off after 20 of them."""

from functools import partial

from benchmarks.registry import Case, Contender, Theme

EVERYBODY = (
    Contender("articles' loop", "exactness:articles", "peer", "records", "gradients of the parts added up"),
    Contender(
        "Keras accumulation", "exactness:keras_steps", "peer", "records", "gradient_accumulation_steps"
    ),
    Contender("ab.fit", "exactness:ours", "ours", "records", "micro_batch_size"),
    Contender(
        "whole, permuted",
        "exactness:permuted",
        "limit",
        "records",
        "not a contender: whole batches with their samples in another order, what rounding alone does",
    ),
)

Difference = partial(Case, measured="difference", rounds=1, check="always")

THEME = Theme(
    "exactness",
    "Weights after 20 updates in parts, beside those of whole batches",
    (
        Difference(
            "plain",
            "batches of 512 as 4 x 128, Adam",
            "",
            "records",
            EVERYBODY,
            batch=512,
            promised={"records": 10_240},
            quick=False,
        ),
        Difference(
            "usual",
            "batches of 300 as 3 x 100 and a short last one, clipping, a schedule, momentum",
            "",
            "records",
            EVERYBODY,
            batch=300,
            promised={"records": 5_000},
        ),
    ),
)
