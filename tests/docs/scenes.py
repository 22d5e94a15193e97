"""What the fixes of the codes stand in: the names that a training script has when it needs them."""

import collections
import re
from pathlib import Path

import numpy as np

RECORDS, SHARDS = 600, 8

BUILD = """
import keras
import anybatch as ab

def build():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = ab.read("train/*.tfrecord").repeat().as_supervised("row", "label")
    return model, data
"""


def scene(code):
    """Return the names that a fix uses, and lay out the files it names."""
    import keras
    import tensorflow as tf

    import anybatch as ab

    records = [_record(number) for number in range(RECORDS)]
    ab.write("train/part.tfrecord", records, shards=SHARDS)
    files = [str(file.rename(f"train/part-{at:05}.tfrecord")) for at, file in enumerate(_shards())]
    Path("train.py").write_text(BUILD)
    features = ab.infer_features(files)
    x, y = np.stack([one["row"] for one in records]), np.array([one["label"] for one in records])
    model = _model(keras)
    supervised = ab.read(files, features).as_supervised("row", "label")
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    names = {
        "ab": ab, "np": np, "tf": tf, "keras": keras, "features": features, "files": files, "model": model,
        "records": records, "record": records[0], "x": x, "y": y, "x_train": x, "y_train": y, "fn": dict,
        "x_batch": x, "y_batch": y, "mean": 3.0, "deviation": 2.0, "cut": 200, "ds": ds, "batch_size": 64,
        "data": ab.read(files, features), "build_model": lambda: _model(keras), "augment": _same,
        "parse": _same,
        "update": 1, "part": 1, "parts": 2, "i": 2, "accumulation_steps": 4, "batch": (x, y),
        "optimizer": keras.optimizers.SGD(), "variables": model.trainable_variables,
        "accumulated": [np.zeros(one.shape) for one in model.trainable_variables],
        "MEAN": 0.0, "STD": 1.0, "losses": [], "loss": 0.5, "collections": collections,
        "loss_fn": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "train": lambda model, batch_size: model.fit(x, y, batch_size=batch_size, verbose=0),
    }  # fmt: skip
    return names | _meant(code, names, supervised)


def _meant(code, names, supervised):
    """Return the names whose meaning depends on what is done with them."""
    tf, x, y = names["tf"], names["x"], names["y"]
    if "ab.fit(model, data, batch_size" in code or "ab.sweep" in code:
        return {"data": supervised.repeat(200) if "sweep" in code else supervised}
    if "model.fit(data" in code:
        return {"data": supervised.batch(64).to_tf()}
    if "ab.fit(model, data" in code or "ab.plan(model, data" in code:
        return {"data": supervised.batch(64)}
    if "model.fit(ds, steps" in code:
        return {"ds": names["ds"].repeat().batch(64)}
    if "parse_example" in code:
        spec = {"label": tf.io.FixedLenFeature([], tf.int64)}
        return {"ds": tf.data.TFRecordDataset(names["files"]), "features": spec}
    if "binary_crossentropy" in code:
        column = "[:, None]" in code
        labels = y.astype("float32") if column else y.astype("float32")[:, None]
        return {"y": labels, "predictions": tf.fill((len(y), 1), 0.5)}
    if "Dense(10)(features)" in code:
        return {"features": names["keras"].Input((4,))}
    if "(x - MEAN)" in code:
        return {"data": names["ab"].from_arrays(x), "standardise": list}
    if re.search(r"ab\.gradients", code):
        return _by_hand(names)
    return {"x": x}


def _by_hand(names):
    """`loss_fn` takes labels and predictions in one line of the fix, and the rows of a part in the other."""
    keras_loss, model = names["loss_fn"], names["model"]

    def loss_fn(one, other):
        return (
            keras_loss(one, other) if len(other.shape) == 2 else keras_loss(other, model(one, training=True))
        )

    return {"loss_fn": loss_fn}


def _record(number):
    return {
        "row": np.array([number % 7, number % 3], "float32"),
        "label": number % 2,
        "x": float(number),
        "weight": 1.0,
        "age": number % 90,
        "height": 1.8,
        "income": 1000.0 * number,
        "tokens": list(range(number % 5)),
        "timestamp": number,
        "id": f"{number}",
        "image": bytes(784),
    }


def _shards():
    return sorted(Path("train").glob("*.tfrecord"))


def _model(keras):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def _same(*values):
    return values
