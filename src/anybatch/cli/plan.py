"""`anybatch plan`: how a batch will be split so that it fits, without training."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from anybatch.cli.arguments import JsonOption
from anybatch.cli.failures import FINE, reported
from anybatch.cli.report import print_json

EXAMPLE = "Example:  anybatch plan train.py:build 'train/*.tfrecord' --batch-size 512 --memory 2GiB"


@reported
def plan(
    built: Annotated[
        str,
        typer.Argument(
            metavar="FILE:FUNCTION",
            help="What returns a compiled model, or (model, stream).",
            show_default=False,
        ),
    ],
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATHS…", help="Shards, where no stream is returned.", show_default=False),
    ] = None,
    *,
    batch_size: Annotated[int | None, typer.Option(min=1, help="The batch you want to train with.")] = None,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="What the process may hold.")] = None,
    label: Annotated[str, typer.Option(help="The feature of PATHS that is the label.")] = "label",
    as_json: JsonOption = False,
) -> int:
    """Probe a few small updates, undo them, and print how batches will be split under the limit.

    Exit code: 0 it fits, 2 it does not, or could not be tried.
    """
    import anybatch as ab
    from anybatch.cli.models import built_pair

    model, stream = built_pair(built)
    if stream is not None and paths:
        unused = f"`{built}` returned a stream, so that `{' '.join(paths)}` would not be read"
        raise ValueError(f"{unused}; leave PATHS out, or return the model alone")
    data = _stream(paths, label, batch_size) if stream is None else stream
    found = ab.plan(model, data, batch_size=None if stream is None else batch_size, memory=memory)
    if as_json:
        print_json(asdict(found))
    else:
        print(found)
    return FINE


def _stream(paths: list[str] | None, label: str, batch_size: int | None) -> Any:
    """Return (x, y) of shards: what is not the label is what the model sees."""
    import anybatch as ab

    if not paths:
        raise ValueError("the function returned a model alone; name the shards it is to be trained on")
    features = ab.infer_features(paths)
    if label not in features:
        raise ValueError(f"no feature {label!r}; there are {', '.join(features)}; say which with --label")
    undecoded = [name for name, feature in features.items() if isinstance(feature, ab.Bytes)]
    if undecoded:
        told = f"feature {undecoded[0]!r} holds bytes, and a model takes numbers"
        raise ValueError(f"{told}; return (model, stream), with a stream that decodes it")
    inputs = [name for name in features if name != label]
    x = inputs[0] if len(inputs) == 1 else {name: name for name in inputs}
    return ab.read(paths, features).batch(batch_size or 32).as_supervised(x, label)
