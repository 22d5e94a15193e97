"""Training scripts of several shapes with nothing wrong in them."""

_PARSE = """
def parse(records):
    parsed = tf.io.parse_example(records, FEATURES)
    images = tf.reshape(tf.io.decode_raw(parsed["image"], tf.uint8), [-1, 28, 28, 1])
    return tf.cast(images, tf.float32) / 255.0, parsed["label"]
"""

SOUND = {
    "arrays given to fit": """
import numpy as np
from tensorflow import keras

x, y = np.random.rand(1000, 4), np.random.randint(0, 2, 1000)
model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1, activation="sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=3, validation_split=0.1)
print(model.evaluate(x, y))
""",
    "arrays with a batch size": """
import keras

(x_train, y_train), (x_test, y_test) = keras.datasets.mnist.load_data()
model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x_train, y_train, batch_size=256, epochs=2, validation_data=(x_test, y_test))
""",
    "files, parsed by the batch": f"""
import tensorflow as tf

FEATURES = {{"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}}
{_PARSE}
files = tf.io.gfile.glob("train/*.tfrecord")
ds = tf.data.TFRecordDataset(files, num_parallel_reads=4)
ds = ds.shuffle(50_000).batch(128).map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
model.fit(ds, epochs=5)
""",
    "interleaved files": f"""
import tensorflow as tf
{_PARSE}
names = tf.data.Dataset.list_files("train/*.tfrecord", shuffle=True)
ds = names.interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE)
ds = ds.shuffle(20_000).batch(64).map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)
model.fit(ds)
""",
    "names of files in a list": """
import os
import tensorflow as tf

names = [os.path.join("data", f"part_{i}.tfrecord") for i in range(16)]
ds = tf.data.Dataset.from_tensor_slices(names).shuffle(16)
ds = ds.interleave(lambda name: tf.data.TFRecordDataset(name), cycle_length=4, num_parallel_calls=4)
ds = ds.shuffle(10_000).batch(32).map(parse_batch, num_parallel_calls=4).prefetch(tf.data.AUTOTUNE)
model.fit(ds)
""",
    "a function for training and for validation": """
import tensorflow as tf

def load(pattern, batch_size, training=False):
    ds = tf.data.TFRecordDataset(tf.io.gfile.glob(pattern))
    if training:
        ds = ds.shuffle(100_000)
    ds = ds.batch(batch_size)
    ds = ds.map(parse_batch, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.prefetch(tf.data.AUTOTUNE)

model.fit(load("train/*", 64, training=True), validation_data=load("val/*", 64), epochs=3)
""",
    "prediction needs no shuffle": """
import tensorflow as tf

ds = tf.data.TFRecordDataset("test.tfrecord").batch(256).map(parse_batch, num_parallel_calls=4).prefetch(1)
predictions = model.predict(ds)
""",
    "evaluation needs no shuffle": """
import tensorflow as tf

test_data = tf.data.TFRecordDataset("test.tfrecord").batch(256).prefetch(1)
loss = model.evaluate(test_data)
""",
    "augmentation behind the cache": """
import tensorflow as tf

def flip(image, label):
    return tf.image.random_flip_left_right(image), label

ds = tf.data.TFRecordDataset(files).map(decode, num_parallel_calls=8).cache("cache/train")
ds = ds.shuffle(5000).map(flip, num_parallel_calls=8).batch(32).prefetch(tf.data.AUTOTUNE)
model.fit(ds)
""",
    "images parsed one by one": """
import tensorflow as tf

def decode(record):
    one = tf.io.parse_single_example(record, FEATURES)
    return tf.image.resize(tf.io.decode_jpeg(one["image"], channels=3), [224, 224]), one["label"]

ds = tf.data.TFRecordDataset(files, num_parallel_reads=8).shuffle(2048)
ds = ds.map(decode, num_parallel_calls=tf.data.AUTOTUNE).batch(32).prefetch(tf.data.AUTOTUNE)
model.fit(ds)
""",
    "a hand-written loop": """
import tensorflow as tf

@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
        loss += sum(model.losses)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss

ds = tf.data.TFRecordDataset(files).shuffle(9999).batch(32).prefetch(1)
for epoch in range(4):
    for x, y in ds:
        train_step(x, y)
""",
    "accumulation that divides and keeps the rest": """
import tensorflow as tf

steps = 4
total = [tf.zeros_like(one) for one in model.trainable_variables]
for number, (x, y) in enumerate(data):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True)) / steps
    grads = tape.gradient(loss, model.trainable_variables)
    total = [a + b for a, b in zip(total, grads)]
    if (number + 1) % steps == 0:
        optimizer.apply_gradients(zip(total, model.trainable_variables))
        total = [tf.zeros_like(one) for one in model.trainable_variables]
if (number + 1) % steps:
    optimizer.apply_gradients(zip(total, model.trainable_variables))
""",
    "accumulation over disjoint slices": """
import numpy as np
import tensorflow as tf

size, parts = 32, 8
for epoch in range(3):
    order = np.random.permutation(len(x))
    for update in range(-(-len(x) // (size * parts))):
        total = None
        for part in range(parts):
            start = (update * parts + part) * size
            rows = order[start : start + size]
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(per_record(y[rows], model(x[rows], training=True)))
            grads = tape.gradient(loss, model.trainable_variables)
            total = grads if total is None else [a + b for a, b in zip(total, grads)]
        optimizer.apply_gradients(zip([g / (size * parts) for g in total], model.trainable_variables))
""",
    "an autoencoder without labels": """
import tensorflow as tf

for x in data:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - x))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
""",
    "a generator against a critic": """
import tensorflow as tf

def generator_step(noise):
    with tf.GradientTape() as tape:
        loss = -tf.reduce_mean(critic(generator(noise, training=True), training=True))
    grads = tape.gradient(loss, generator.trainable_variables)
    optimizer.apply_gradients(zip(grads, generator.trainable_variables))
""",
    "sizes compared from fresh weights": """
from tensorflow import keras

def build():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model

results = {}
for size in (16, 64, 256):
    model = build()
    results[size] = model.fit(x, y, batch_size=size, epochs=5).history["loss"][-1]
""",
    "fine-tuning in two stages": """
import keras

base = keras.applications.MobileNetV3Small(include_top=False)
base.trainable = False
model = keras.Sequential([base, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(5)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
first = model.fit(x, y, batch_size=64, epochs=3)
base.trainable = True
model.compile(keras.optimizers.Adam(1e-5), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
second = model.fit(x, y, batch_size=16, epochs=3)
""",
    "a retry outside of except that keeps the batch": """
import tensorflow as tf

batch, parts = 512, 1
while True:
    model = build(accumulation=parts)
    try:
        train(model, batch // parts)
        break
    except tf.errors.ResourceExhaustedError:
        parts *= 2
""",
    "errors that are logged and raised": """
import logging
import tensorflow as tf

try:
    model.fit(x, y, batch_size=128)
except Exception:
    logging.exception("training failed")
    raise
""",
    "the end of the data caught as such": """
import tensorflow as tf

iterator = iter(tf.data.TFRecordDataset(files).batch(10))
while True:
    try:
        batch = next(iterator)
    except tf.errors.OutOfRangeError:
        break
    inspect(batch)
""",
    "anybatch from the files": """
import anybatch as ab

data = (
    ab.read("train/*.tfrecord", {"image": ab.Raw("uint8", (28, 28, 1)), "label": ab.Numbers("int64")})
    .shuffle(seed=7)
    .map(scale, batched=True)
    .batch(512)
    .as_supervised("image", "label")
)
history = ab.fit(model, data, memory="2GiB", epochs=3, checkpoint="runs/a")
""",
    "anybatch in place of fit": """
import anybatch as ab
import tensorflow as tf

ds = tf.data.TFRecordDataset(files).shuffle(10_000).batch(512).prefetch(tf.data.AUTOTUNE)
ab.fit(model, ds, memory="2GiB", epochs=2)
""",
    "a fixed split": """
import tensorflow as tf

ds = tf.data.TFRecordDataset(files).shuffle(10_000, seed=1, reshuffle_each_iteration=False)
val = ds.take(1000).batch(64)
train = ds.skip(1000).shuffle(10_000).batch(64).prefetch(1)
model.fit(train, validation_data=val)
""",
    "an endless stream with steps": """
import tensorflow as tf

ds = tf.data.TFRecordDataset(files).shuffle(10_000).repeat().batch(64).prefetch(1)
model.fit(ds, epochs=10, steps_per_epoch=500)
""",
    "a model of its own class": """
import keras
import tensorflow as tf

class Net(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return {"loss": loss}

net = Net()
net.compile("adam", "mse")
net.fit(x, y, batch_size=32)
""",
    "permuted by hand": """
import numpy as np
import tensorflow as tf

x, y = np.load("x.npy"), np.load("y.npy")
order = np.random.permutation(len(x))
x, y = x[order], y[order]
for epoch in range(3):
    for start in range(0, len(x), 64):
        with tf.GradientTape() as tape:
            loss = loss_fn(y[start : start + 64], model(x[start : start + 64], training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
""",
    "looking at a few records": """
import tensorflow as tf

for record in tf.data.TFRecordDataset("train.tfrecord").take(3):
    print(tf.train.Example.FromString(record.numpy()))
""",
}
