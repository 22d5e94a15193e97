"""Who takes part, and at what. A new contender is a line here, a new theme a file and a line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal

Role = Literal["ours", "peer", "limit"]
# what a contender can be held to: the digest with or without order, the number of records, or nothing
Proves = Literal["ordered", "any_order", "records", "file_bytes"]
Unit = Literal["records", "bytes", "shards"]


@dataclass(frozen=True, slots=True)
class Contender:
    """One row of a table."""

    name: str
    build: str  # "module:function" below benchmarks.contenders
    role: Role
    proves: Proves
    note: str = ""
    environment: str = ""  # a list under benchmarks/environments; ours if empty


@dataclass(frozen=True, slots=True)
class Case:
    """One table: the same work for every contender; the first of role `ours` is the measure."""

    name: str
    title: str
    dataset: str
    unit: Unit
    contenders: tuple[Contender, ...]
    batch: int = 512
    cache: Literal["warm", "cold"] = "warm"

    def without(self, names: Sequence[str]) -> "Case":
        """Return the case with some contenders left out."""
        return replace(self, contenders=tuple(one for one in self.contenders if one.name not in names))


@dataclass(frozen=True, slots=True)
class Theme:
    """One question, asked about several data sets."""

    name: str
    title: str
    cases: tuple[Case, ...]


THEMES = ("in_order", "index", "jpeg", "shuffled", "training")

_LIMIT = "not a contender: copying and checksumming these bytes is the physical limit"
CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Contender("tf.data usual", "tf_data:usual", "peer", "ordered", "parse_single_example, then batch"),
        Contender(
            "tf.data vectorised",
            "tf_data:vectorised",
            "peer",
            "any_order",
            "interleave, batch, parse",
        ),
        Contender("tf.data best", "tf_data:best", "peer", "any_order", "any order, AUTOTUNE"),
        Contender(
            "tf.data best, fixed", "tf_data:best_fixed", "peer", "any_order", "any order, a call per core"
        ),
        Contender("tf.data best in order", "tf_data:best_in_order", "peer", "ordered"),
        Contender(
            "tf.data best, shuffled",
            "tf_data:best_shuffled",
            "peer",
            "any_order",
            "shuffle(10_000), any order",
        ),
        Contender("Grain", "grain_records:in_order", "peer", "any_order", "no checksums", "grain"),
        Contender(
            "Grain, shuffled",
            "grain_records:shuffled",
            "peer",
            "any_order",
            "a window of 10,000; no checksums",
            "grain",
        ),
        Contender("tf.data count", "tf_data:count", "peer", "records", "reads and counts all records"),
        Contender("anybatch", "ours:in_order", "ours", "ordered"),
        Contender("anybatch shuffled", "ours:shuffled", "ours", "any_order", "exactly shuffled"),
        Contender("anybatch shuffled, to_tf", "ours_to_tf:shuffled", "ours", "any_order"),
        Contender("anybatch window", "ours:window", "ours", "any_order", 'shuffle(window="64MiB")'),
        Contender("anybatch first sight", "ours:first_sight", "ours", "ordered", "no index on disk yet"),
        Contender("anybatch images", "jpeg_ours:decoded", "ours", "records", "as antialias=True"),
        Contender("tf.data resize", "jpeg_tf:resized", "peer", "records", "decode_jpeg, image.resize"),
        Contender("tf.data antialias", "jpeg_tf:antialiased", "peer", "records", "the same, antialias=True"),
        Contender(
            "tf.data ratio=2", "jpeg_tf:halved", "peer", "records", "decode_jpeg(ratio=2), image.resize"
        ),
        Contender("anybatch index", "ours:index_one_thread", "ours", "records", "one thread"),
        Contender("anybatch index, all cores", "ours:index_all_cores", "ours", "records"),
        Contender("anybatch open", "ours:open_indexed", "ours", "records", "read() and len()"),
        Contender("ab.fit", "training:ours", "ours", "records", "exactly shuffled"),
        Contender("model.fit, tf.data usual", "training:usual", "peer", "records", "not shuffled"),
        Contender("model.fit, tf.data best", "training:best", "peer", "records", "not shuffled"),
        Contender(
            "model.fit, constant batch",
            "training:constant",
            "limit",
            "records",
            "not a contender: the same batch again and again, nothing read",
        ),
        Contender("bare limit", "bare:one_thread", "limit", "file_bytes", f"one thread; {_LIMIT}"),
        Contender("bare limit, all cores", "bare:all_cores", "limit", "file_bytes", _LIMIT),
    )
}


def contenders(*names: str) -> tuple[Contender, ...]:
    """Return contenders by name, in the order given."""
    return tuple(CONTENDERS[name] for name in names)


def load_theme(name: str) -> Theme:
    """Return the theme that `benchmarks/themes/NAME.py` describes."""
    module: Any = import_module(f"benchmarks.themes.{name}")
    theme: Theme = module.THEME
    return theme
