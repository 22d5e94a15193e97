"""Words of tf.data that a stream does not have, and what to say instead."""

INSTEAD = {
    "padded_batch": "batch(n), then .to_padded() of a column, or as_supervised, which pads",
    "ragged_batch": "batch(n): lists of any length are ragged columns",
    "bucket_by_sequence_length": "batch(n): lists stay ragged, so nothing is padded before you ask",
    "concatenate": "ab.concat([one, other])",
    "sample_from_datasets": "ab.mix(streams, weights)",
    "choose_from_datasets": "ab.mix(streams, weights)",
    "from_tensor_slices": "ab.from_arrays(arrays)",
    "from_tensors": "ab.from_arrays(arrays)",
    "zip": "one ab.from_arrays over all arrays, or one record file that holds both",
    "interleave": "nothing: shards are one numbering, and shuffle mixes all of them",
    "flat_map": "records of their own, written by ab.write",
    "unbatch": "batch once, at the end",
    "rebatch": "batch once, at the end",
    "window": "batch(n), and a map over its rows",
    "group_by_window": "batch(n), and a map over its rows",
    "enumerate": "enumerate(stream)",
    "reduce": "a loop over the stream",
    "scan": "a loop over the stream",
    "as_numpy_iterator": "iter(stream): elements are NumPy arrays",
    "cardinality": "len(stream)",
    "element_spec": "stream.explain(), or stream.to_tf().element_spec",
    "apply": "the function itself: function(stream)",
    "options": "nothing: threads and memory are chosen while running, within limit_memory",
    "with_options": "nothing: threads and memory are chosen while running, within limit_memory",
    "ignore_errors": 'ab.read(paths, on_corrupt="skip")',
    "snapshot": "cache(path), or ab.write",
    "save": "ab.write",
    "unique": "a filter that remembers what it has seen",
}


def way_out(name: str) -> str:
    """Return how an error goes on for a word of tf.data; nothing for any other.

    >>> way_out("cardinality"), way_out("nonsense")
    ('; here it is len(stream)', '')
    """
    return f"; here it is {INSTEAD[name]}" if name in INSTEAD else ""
