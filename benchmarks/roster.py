"""Who takes part in more than one theme. A new contender is a line here, or in its theme."""

from benchmarks.registry import Contender

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
            quick=False,
        ),
        Contender("tf.data best", "tf_data:best", "peer", "any_order", "any order, AUTOTUNE", quick=False),
        Contender(
            "tf.data best, fixed", "tf_data:best_fixed", "peer", "any_order", "any order, a call per core"
        ),
        Contender("tf.data best in order", "tf_data:best_in_order", "peer", "ordered", quick=False),
        Contender(
            "tf.data best, shuffled",
            "tf_data:best_shuffled",
            "peer",
            "any_order",
            "shuffle(10_000), any order",
        ),
        Contender(
            "tf.data best, shuffled in 300",
            "tf_data:best_shuffled_300",
            "peer",
            "any_order",
            "shuffle(300): 10,000 images would not fit",
        ),
        Contender(
            "Grain", "grain_records:in_order", "peer", "any_order", "no checksums", "grain", quick=False
        ),
        Contender(
            "Grain, shuffled",
            "grain_records:shuffled",
            "peer",
            "any_order",
            "a window of 10,000; no checksums",
            "grain",
            quick=False,
        ),
        Contender(
            "Grain ArrayRecord",
            "grain_arrays:in_order",
            "peer",
            "any_order",
            "a format of its own; worker processes",
            "grain",
            "arrayrecord",
        ),
        Contender(
            "Grain ArrayRecord, shuffled",
            "grain_arrays:shuffled",
            "peer",
            "any_order",
            "exactly shuffled; worker processes",
            "grain",
            "arrayrecord",
        ),
        Contender(
            "Grain ArrayRecord, threads",
            "grain_arrays:shuffled_by_threads",
            "peer",
            "any_order",
            "exactly shuffled; one process",
            "grain",
            "arrayrecord",
        ),
        Contender("tfrecord", "pypi_tfrecord:in_order", "peer", "ordered", "no checksums", "tfrecord"),
        Contender(
            "tfrecord, shuffled",
            "pypi_tfrecord:shuffled",
            "peer",
            "any_order",
            "a buffer of 10,000; no checksums",
            "tfrecord",
            quick=False,
        ),
        Contender(
            "WebDataset",
            "web_dataset:in_order",
            "peer",
            "ordered",
            "tar files, one process, no checksums",
            "webdataset",
            "tar",
        ),
        Contender(
            "WebDataset, shuffled",
            "web_dataset:shuffled",
            "peer",
            "any_order",
            "a buffer of 10,000",
            "webdataset",
            "tar",
        ),
        Contender("tf.data count", "tf_data:count", "peer", "records", "reads and counts all records"),
        Contender("anybatch", "ours:in_order", "ours", "ordered"),
        Contender("anybatch shuffled", "ours:shuffled", "ours", "any_order", "exactly shuffled"),
        Contender("anybatch shuffled, to_tf", "ours_to_tf:shuffled", "ours", "any_order", quick=False),
        Contender(
            "anybatch window", "ours:window", "ours", "any_order", 'shuffle(window="64MiB")', quick=False
        ),
        Contender(
            "anybatch first sight", "ours:first_sight", "ours", "ordered", "no index on disk yet", quick=False
        ),
        Contender(
            "anybatch shuffled, first sight",
            "ours:shuffled_first_sight",
            "ours",
            "any_order",
            "no index on disk yet",
        ),
        Contender("anybatch images", "jpeg_ours:decoded", "ours", "records", "as antialias=True"),
        Contender("tf.data resize", "jpeg_tf:resized", "peer", "records", "decode_jpeg, image.resize"),
        Contender("tf.data antialias", "jpeg_tf:antialiased", "peer", "records", "the same, antialias=True"),
        Contender(
            "tf.data ratio=2",
            "jpeg_tf:halved",
            "peer",
            "records",
            "decode_jpeg(ratio=2), image.resize",
            quick=False,
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
        Contender("ab.fit, constant batch", "training:ours_constant", "ours", "records", "in one part"),
        Contender(
            "bare limit", "bare:one_thread", "limit", "file_bytes", f"one thread; {_LIMIT}", quick=False
        ),
        Contender("bare limit, all cores", "bare:all_cores", "limit", "file_bytes", _LIMIT),
        Contender(
            "bare limit, one batch",
            "bare:one_batch",
            "limit",
            "file_bytes",
            "not a contender: the bytes of a batch copied and checksummed",
        ),
        Contender(
            "bare limit, by batches",
            "bare:by_batches",
            "limit",
            "file_bytes",
            "not a contender: the bytes of one batch are held at a time, copied and checksummed",
        ),
        Contender(
            "bare limit, opening",
            "bare:opened",
            "limit",
            "file_bytes",
            "not a contender: files are opened and asked for their sizes",
        ),
    )
}


def contenders(*names: str) -> tuple[Contender, ...]:
    """Return contenders by name, in the order given."""
    return tuple(CONTENDERS[name] for name in names)
