"""`anybatch sweep`: several batch sizes, each from the same fresh weights."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from anybatch.cli.arguments import JsonOption, refuse_unwritable
from anybatch.cli.failures import FINE, complain, reported
from anybatch.cli.report import print_json, print_table, say

if TYPE_CHECKING:
    from anybatch.doctor.sweep import Sweep, Trial

EXAMPLE = (
    "Example:  anybatch sweep train.py:build --validation train.py:held_out "
    "--batch-sizes 32,128,512 --samples 50000 --html sweep.html"
)

ValidationOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE:FUNCTION",
        help="What returns a stream of (x, y), or arrays, that nothing trains on: its loss decides.",
        show_default="none",
    ),
]


@reported
def sweep(
    built: Annotated[
        str,
        typer.Argument(
            metavar="FILE:FUNCTION",
            help="What returns a compiled model and a stream of (x, y).",
            show_default=False,
        ),
    ],
    *,
    batch_sizes: Annotated[str, typer.Option(metavar="N,N,…", help="The sizes to compare.")] = "32,128,512",
    samples: Annotated[
        int, typer.Option(min=1, help="How many samples each size trains on, of several epochs if need be.")
    ] = 10_000,
    validation: ValidationOption = None,
    data_sizes: Annotated[
        str,
        typer.Option(
            metavar="N,N,…",
            help="Also the peak memory of an epoch over so many samples, beside tf.data and plain arrays.",
            show_default="none",
        ),
    ] = "",
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page to look at.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Train a fresh model at each batch size over the same number of samples, and say which to take.

    Per size: samples/s, peak memory, the loss on the same records and on validation data, and the gradient
    noise scale with the weights it ended with.

    Exit code: 0 done, 2 could not do it.
    """
    from anybatch.cli.models import built_model
    from anybatch.doctor import sweep as compare

    sizes = _sizes(batch_sizes)
    refuse_unwritable(html)
    found = compare(
        lambda: built_model(built),
        _stream(built),
        sizes,
        samples=samples,
        validation=_held_out(validation) if validation else None,
        data_sizes=_sizes(data_sizes) if data_sizes else (),
        progress=None if as_json else _tell,
    )
    if html:
        found.to_html(html)
    if as_json:
        print_json(found.document())
    else:
        _print(found)
    return FINE


def _print(found: "Sweep") -> None:
    from anybatch.doctor.sweep import HEADERS, MEMORY_HEADERS

    print_table(f"{found.samples:,} samples each", HEADERS, found.rows())
    say(found.verdict)
    if found.memory:
        say()
        print_table("memory against data size", MEMORY_HEADERS, found.memory_rows())


def _stream(built: str) -> Any:
    from anybatch.cli.models import built_pair

    model, stream = built_pair(built)
    if stream is None:
        raise ValueError(f"`{built}` returned a {type(model).__name__} alone; sweep needs (model, stream)")
    return stream


def _held_out(named: str) -> Any:
    from anybatch.cli.models import called

    made = called(named)
    if made is None:
        # to the sweep None would mean that nobody asked
        raise ValueError(f"`{named}` returned None; return a stream of (x, y), or the arrays (x, y)")
    return made


def _sizes(text: str) -> list[int]:
    try:
        return [int(one) for one in text.split(",")]
    except ValueError:
        raise ValueError(f"`{text}` is no list of sizes; write 32,128,512") from None


def _tell(trial: "Trial") -> None:
    complain(f"batch {trial.batch_size:,}: loss {trial.loss:.4g}, {trial.samples_per_second:,.0f} samples/s")
