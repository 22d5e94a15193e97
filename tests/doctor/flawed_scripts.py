"""Scripts with one known trap each; a comment `# AB… severity` marks the line that has to be named."""

from tests.doctor.flawed_loops import LOOPS
from tests.doctor.several_scripts import several

ORDER = several("""
import tensorflow as tf

ds = tf.data.TFRecordDataset(["a.tfrecord", "b.tfrecord"])
ds = ds.batch(64)  # AB601 warning
ds = ds.prefetch(tf.data.AUTOTUNE)
model.fit(ds, epochs=2)
----
import tensorflow as tf
from glob import glob

def build(pattern, size):
    names = tf.data.Dataset.list_files(pattern)
    records = names.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=4)
    return (
        records
        .batch(size)  # AB601 warning
        .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(2)
    )

model.fit(build("train/*", 32))
----
import numpy as np
import tensorflow as tf

cats, dogs = np.random.rand(500, 8), np.random.rand(500, 8) + 1
x = np.concatenate([cats, dogs])
y = np.concatenate([np.zeros(500), np.ones(500)])
ds = tf.data.Dataset.from_tensor_slices((x, y)).batch(25).prefetch(1)  # AB601 error
model.fit(ds)
----
import tensorflow as tf

for epoch in range(3):
    for start in range(0, 1000, 50):
        x = images[start : start + 50]  # AB601 warning
        y = labels[start : start + 50]
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
----
import anybatch as ab

data = ab.read("train/*.tfrecord").batch(512)  # AB601 warning
ab.fit(model, data, memory="2GiB")
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files).batch(32).shuffle(1000).prefetch(1)  # AB602 warning
model.fit(ds)
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files)
ds = ds.batch(32)
ds = ds.map(parse, num_parallel_calls=4)
ds = ds.shuffle(buffer_size=128)  # AB602 warning
ds = ds.prefetch(1)
model.fit(ds)
----
import tensorflow as tf

total = 60000
x = tf.constant([1.0])
images = np.zeros((total, 28))
labels = np.zeros(total)
ds = tf.data.Dataset.from_tensor_slices((images, labels))
ds = ds.shuffle(1024)  # AB603 warning
model.fit(ds.batch(32).prefetch(1))
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files)
ds = ds.shuffle(1024)  # AB603 note
model.fit(ds.batch(32).prefetch(1))
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files).shuffle(100).repeat(5).take(200).batch(10).prefetch(1)  # AB604 warning
model.fit(ds)
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files)
ds = ds.repeat(5)  # AB605 warning
ds = ds.shuffle(1000)
ds = ds.batch(10).prefetch(1)
model.fit(ds)
----
import tensorflow as tf

everything = tf.data.TFRecordDataset(files)
everything = everything.shuffle(1000)  # AB606 warning
train = everything.skip(200).batch(10).prefetch(1)
held_out = everything.take(200).batch(10)
model.fit(train, validation_data=held_out)
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files).shuffle(1000).repeat().batch(10).prefetch(1)
model.fit(ds, epochs=3)  # AB607 error
""")

PIPELINE = several("""
import tensorflow as tf

def augment(image, label):
    return tf.image.random_flip_left_right(image), label

ds = tf.data.TFRecordDataset(files).map(parse, num_parallel_calls=4)
ds = ds.map(augment, num_parallel_calls=4)
ds = ds.cache("cache")  # AB611 warning
ds = ds.shuffle(1000).batch(10).prefetch(1)
model.fit(ds)
----
import tensorflow as tf
from tensorflow import keras

flips = keras.Sequential([keras.layers.RandomFlip(), keras.layers.RandomRotation(0.1)])
ds = tf.data.TFRecordDataset(files).map(parse, num_parallel_calls=4)
ds = ds.map(lambda x, y: (flips(x, training=True), y), num_parallel_calls=4)
ds = ds.cache("cache")  # AB611 warning
model.fit(ds.shuffle(1000).batch(10).prefetch(1))
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files)
ds = ds.cache()  # AB612 note
model.fit(ds.shuffle(1000).batch(10).prefetch(1))
----
import numpy as np
import tensorflow as tf

pictures = np.zeros((20000, 64, 64, 3))
ds = tf.data.Dataset.from_tensor_slices(pictures)  # 1.8 GiB, twice: AB625 as well
ds = ds.cache()  # AB612 warning
model.fit(ds.shuffle(20000).batch(10).prefetch(1))
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files).shuffle(1000)
ds = ds.cache("cache")  # AB613 warning
model.fit(ds.batch(10).prefetch(1))
----
import tensorflow as tf

FEATURES = {"x": tf.io.FixedLenFeature([10], tf.float32)}

def parse(record):
    return tf.io.parse_single_example(record, FEATURES)["x"]

ds = tf.data.TFRecordDataset(files).shuffle(1000)
ds = ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE)  # AB621 warning
model.fit(ds.batch(10).prefetch(1))
----
import tensorflow as tf

def parse(record):
    one = tf.io.parse_single_example(record, FEATURES)
    return tf.io.decode_jpeg(one["image"], channels=3)

ds = tf.data.TFRecordDataset(files).shuffle(1000)
ds = ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE)  # AB621 note
model.fit(ds.batch(10).prefetch(1))
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files).shuffle(1000)
ds = ds.batch(10)  # AB622 warning
model.fit(ds)
----
import tensorflow as tf

records = tf.data.TFRecordDataset("train.tfrecord")
ds = records.interleave(lambda one: tf.data.TFRecordDataset(one), cycle_length=4)  # AB623 error
model.fit(ds.shuffle(100).batch(10).prefetch(1))
----
import tensorflow as tf

def opened(name):
    return tf.data.TFRecordDataset(name, compression_type="GZIP")

ds = tf.data.TFRecordDataset("train.tfrecord").flat_map(opened)  # AB623 error
model.fit(ds.shuffle(100).batch(10).prefetch(1))
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files).shuffle(1000).batch(10)
ds = ds.map(parse)  # AB624 note
model.fit(ds.prefetch(1))
----
import numpy as np
import tensorflow as tf

table = np.random.rand(2_000_000, 100)
answers = np.random.randint(0, 2, 2_000_000)
ds = tf.data.Dataset.from_tensor_slices((table, answers))  # AB625 warning
model.fit(ds.shuffle(len(table)).batch(10).prefetch(1))
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files)
ds = ds.apply(tf.data.experimental.ignore_errors())  # AB626 warning
model.fit(ds.shuffle(1000).batch(10).prefetch(1))
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files).shuffle(1000).batch(10).prefetch(1)
held = list(ds)  # AB627 warning
""")

FITS = several("""
import tensorflow as tf

try:
    model.fit(x, y, batch_size=4096)
except tf.errors.OutOfRangeError:  # AB801 warning
    print("does not fit")
----
import tensorflow as tf

try:
    model.fit(x, y, batch_size=4096)
except MemoryError:  # AB801 warning
    print("does not fit")
----
import tensorflow as tf

try:
    model.fit(x, y, batch_size=4096)
except tf.errors.OutOfMemoryError:  # AB801 error
    print("does not fit")
----
try:
    model.fit(x, y, batch_size=4096)
except:  # AB802 warning
    pass
----
import tensorflow as tf

def train():
    model.fit(x, y, batch_size=4096)

try:
    train()
except Exception as problem:  # AB802 warning
    print(problem)
----
import tensorflow as tf

try:
    model.fit(x, y, batch_size=4096)
except tf.errors.ResourceExhaustedError:  # AB803 warning
    model.fit(x, y)
----
import tensorflow as tf

size = batch = 4096
while batch:
    try:
        model.fit(x, y, batch_size=batch)
        break
    except tf.errors.ResourceExhaustedError:  # AB804 warning
        batch //= 2
----
# AB802 as well: what went wrong is not even asked
try:
    model.fit(x, y, batch_size=4096)
except Exception:  # AB803 warning
    model.fit(x, y, batch_size=size)
----
# AB802 as well
def train(size):
    model.fit(x, y, batch_size=size)

try:
    train(4096)
except:  # AB803 warning
    train(size)
----
batch = 4096
while batch:
    try:
        model.fit(x, y, batch_size=batch)
        break
    except Exception as problem:  # AB804 warning
        if "OOM" not in str(problem):
            raise
        batch //= 2
----
from tensorflow import keras

model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
first = model.fit(x, y, batch_size=8)
second = model.fit(x, y, batch_size=256)  # AB805 warning
print(first.history, second.history)
----
from tensorflow import keras

model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
for size in [8, 32, 128]:
    results[size] = model.fit(x, y, batch_size=size)  # AB805 warning
----
# the whole data at once: a full batch
model.fit(x, y, epochs=10)  # AB806 warning
----
history_full = model.fit(x, y, epochs=10)  # AB806 warning
----
import tensorflow as tf

ds = tf.data.TFRecordDataset(files).shuffle(1000).batch(10).prefetch(1)
model.fit(ds, batch_size=64)  # AB807 warning
----
from keras import optimizers

optimizer = optimizers.Adam(1e-3, gradient_accumulation_steps=4)  # AB808 note
""")

FLAWED = [*ORDER, *PIPELINE, *LOOPS, *FITS]
