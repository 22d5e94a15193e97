"""What five articles on batch size and memory do, written anew: script, what is wrong, what is noted."""

ARTICLES = {
    "cached and shuffled with a guessed buffer": (
        """
import tensorflow as tf

def one(record):
    spec = {"pixels": tf.io.FixedLenFeature([], tf.string)}
    got = tf.io.parse_single_example(record, spec)
    return tf.reshape(tf.io.decode_raw(got["pixels"], tf.uint8), [28, 28, 1])

def pipeline(path, size):
    ds = tf.data.TFRecordDataset(path)
    ds = ds.map(one)
    ds = ds.cache()
    ds = ds.shuffle(buffer_size=10000)
    ds = ds.batch(size)
    return ds.prefetch(tf.data.AUTOTUNE)

ds = pipeline("some/file.tfrecord", 512)
""",
        {"AB621"},
        {"AB612", "AB603", "AB624"},
    ),
    "half the batch, tried again in the handler": (
        """
import tensorflow as tf

try:
    ds = pipeline(path, size)
    for batch in ds:
        use(batch)
except tf.errors.ResourceExhaustedError as error:
    print("out of memory", error)
    smaller_batch = size // 2
    ds = pipeline(path, smaller_batch)
    for batch in ds:
        use(batch)
""",
        {"AB803", "AB804"},
        set(),
    ),
    "interleave over the records of one file": (
        """
import tensorflow as tf

def pipeline(path, size, calls=tf.data.AUTOTUNE):
    ds = tf.data.TFRecordDataset(path)
    ds = ds.interleave(lambda x: tf.data.TFRecordDataset(x), cycle_length=8, num_parallel_calls=calls)
    ds = ds.map(one, num_parallel_calls=calls)
    return ds.batch(size).prefetch(tf.data.AUTOTUNE)

ds = pipeline(path, 512)
""",
        {"AB623", "AB601"},
        set(),
    ),
    "a fit again in the handler, and a handler for everything": (
        """
import tensorflow as tf

try:
    model = tf.keras.models.Sequential([])
    size = 256
    model.compile(optimizer="adam", loss="categorical_crossentropy")
    model.fit(x_train, y_train, batch_size=size, epochs=10)
except tf.errors.ResourceExhaustedError as error:
    batch_size = 64
    model.fit(x_train, y_train, batch_size=batch_size, epochs=10)
except Exception as error:
    print("unexpected", error)
""",
        {"AB802", "AB803", "AB804"},
        set(),
    ),
    "arrays of unknown size as constants": (
        """
import tensorflow as tf

ds = tf.data.Dataset.from_tensor_slices((x_train, y_train))
ds = ds.shuffle(buffer_size=1000).batch(64).prefetch(tf.data.AUTOTUNE)
model = tf.keras.models.Sequential([])
model.compile(optimizer="adam", loss="categorical_crossentropy")
model.fit(ds, epochs=10)
""",
        set(),
        {"AB603", "AB625"},
    ),
    "accumulation over overlapping slices without labels": (
        """
import tensorflow as tf

size, steps = 32, 8
model = tf.keras.models.Sequential([])
for epoch in range(epochs):
    for number in range(len(x_train) // size):
        summed = None
        for i in range(steps):
            with tf.GradientTape() as tape:
                xs = x_train[number * size + i * size : (number + 1) * size + i * size]
                y_part = y_train[number * size + i * size : (number + 1) * size + i * size]
                loss = model(xs, training=True)
                loss = tf.reduce_mean(loss)
            grads = tape.gradient(loss, model.trainable_variables)
            if summed is None:
                summed = grads
            else:
                summed = [tf.add(a, b) for a, b in zip(summed, grads)]
        optimizer.apply_gradients(zip(summed, model.trainable_variables))
""",
        {"AB601", "AB701", "AB702", "AB703", "AB704"},
        set(),
    ),
    "a small data set with prefetch": (
        """
import tensorflow as tf

ds = tf.data.Dataset.from_tensor_slices(range(10000))
ds = ds.map(lambda x: x * 2).prefetch(tf.data.AUTOTUNE)
for element in ds:
    print(element.numpy())
""",
        set(),
        set(),
    ),
    "shards interleaved, records parsed one by one": (
        """
import os
import tensorflow as tf

names = [os.path.join("data", f"shard_{i}.tfrecord") for i in range(10)]
ds = tf.data.Dataset.from_tensor_slices(names)
ds = ds.interleave(
    lambda name: tf.data.TFRecordDataset(name),
    cycle_length=tf.data.AUTOTUNE,
    num_parallel_calls=tf.data.AUTOTUNE,
)
ds = ds.map(lambda x: tf.io.parse_single_example(x, features)).prefetch(tf.data.AUTOTUNE)
for element in ds:
    pass
""",
        {"AB621"},
        {"AB624"},
    ),
    "a lazy map": (
        """
import tensorflow as tf

ds = tf.data.Dataset.from_tensor_slices(range(10000))

def heavy(x):
    return x * 10

ds = ds.map(heavy)
for element in ds:
    print(element.numpy())
""",
        set(),
        set(),
    ),
    "an eager loop over slices": (
        """
import numpy as np
import tensorflow as tf

n = 1000000
data = np.random.rand(n, 100)
labels = np.random.randint(0, 2, n)
model = tf.keras.Sequential([
    tf.keras.layers.Dense(64, activation="relu", input_shape=(100,)),
    tf.keras.layers.Dense(1, activation="sigmoid"),
])
size = 10000
optimizer = tf.keras.optimizers.Adam()
for epoch in range(10):
    for i in range(0, n, size):
        x = data[i:i + size]
        y = labels[i:i + size]
        with tf.GradientTape() as tape:
            out = model(x)
            loss = tf.keras.losses.binary_crossentropy(y, out)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
""",
        {"AB705", "AB706"},
        {"AB601", "AB707"},
    ),
    "a loop over a data set of constants": (
        """
import numpy as np
import tensorflow as tf

n = 1000000
data = np.random.rand(n, 100)
labels = np.random.randint(0, 2, n)
ds = tf.data.Dataset.from_tensor_slices((data, labels))
ds = ds.shuffle(buffer_size=10000).batch(32).prefetch(tf.data.AUTOTUNE)
model = tf.keras.Sequential([
    tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dense(1, activation="sigmoid"),
])
for epoch in range(10):
    for x, y in ds:
        with tf.GradientTape() as tape:
            out = model(x)
            loss = tf.keras.losses.binary_crossentropy(y, out)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
""",
        {"AB625", "AB705", "AB706"},
        {"AB603", "AB707"},
    ),
    "accumulation without division or a last update": (
        """
import tensorflow as tf

steps = 10
for epoch in range(epochs):
    summed = [tf.zeros_like(v) for v in model.trainable_variables]
    for i, (x, y) in enumerate(dataset):
        with tf.GradientTape() as tape:
            out = model(x)
            loss = tf.keras.losses.binary_crossentropy(y, out)
        grads = tape.gradient(loss, model.trainable_variables)
        summed = [tf.add(a, b) for a, b in zip(summed, grads)]
        if (i + 1) % steps == 0:
            optimizer.apply_gradients(zip(summed, model.trainable_variables))
            summed = [tf.zeros_like(v) for v in model.trainable_variables]
""",
        {"AB703", "AB704", "AB706", "AB707"},
        set(),
    ),
    "two classes, shuffled whole": (
        """
import numpy as np
import tensorflow as tf

a, b = np.random.rand(100, 10), np.random.rand(100, 10) + 2
features = np.concatenate((a, b), axis=0)
labels = np.concatenate((np.zeros(100), np.ones(100)), axis=0)
model = tf.keras.Sequential([tf.keras.layers.Dense(1, activation="sigmoid")])
model.compile(optimizer="adam", loss="binary_crossentropy")
# First way: no batch size, so one full batch
ds = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(len(features)).batch(32)
history = model.fit(ds, epochs=10)
""",
        {"AB806"},
        {"AB622"},
    ),
    "two batch sizes compared on one model": (
        """
import numpy as np
import tensorflow as tf

features = np.random.randn(500, 2)
labels = (2 * features[:, 0] + np.random.randn(500)).reshape(-1, 1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
small = tf.data.Dataset.from_tensor_slices((features, labels)).batch(16)
of_small = model.fit(small, epochs=50)
large = tf.data.Dataset.from_tensor_slices((features, labels)).batch(128)
of_large = model.fit(large, epochs=50)
""",
        {"AB805"},
        {"AB601", "AB622"},
    ),
    "the wrong error for a large batch": (
        """
import numpy as np
import tensorflow as tf

features = np.random.rand(100000, 100)
labels = np.random.randint(0, 2, 100000)
model = tf.keras.Sequential([tf.keras.layers.Dense(1, activation="sigmoid")])
model.compile(optimizer="adam", loss="binary_crossentropy")
try:
    model.fit(tf.data.Dataset.from_tensor_slices((features, labels)).batch(10000), epochs=5)
except tf.errors.OutOfRangeError:
    print("out of memory")
except tf.errors.ResourceExhaustedError:
    print("out of memory")
model.fit(tf.data.Dataset.from_tensor_slices((features, labels)).batch(32), epochs=5)
""",
        {"AB801", "AB805"},
        {"AB601", "AB622"},
    ),
}
