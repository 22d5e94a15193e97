"""Excerpts of sound training code that look like a known trap, and are none."""

# ruff: noqa: E501 - as people write them

EXCERPTS = {
    "a loss averaged over the global batch": """
import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
def train_step(inputs):
    images, labels = inputs
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        per_example = loss_object(labels, predictions)
        loss = tf.nn.compute_average_loss(per_example, global_batch_size=64)
        loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
""",
    "losses of layers added": """
import tensorflow as tf
for x, y in ds:
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True)) + tf.math.add_n(model.losses)
    grads = tape.gradient(loss, model.trainable_weights)
    optimizer.apply_gradients(zip(grads, model.trainable_weights))
""",
    "a penalty on weights": """
import tensorflow as tf
for x, y in ds:
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True)) + 1e-4 * tf.nn.l2_loss(model.w)
    grads = tape.gradient(loss, model.trainable_weights)
    optimizer.apply_gradients(zip(grads, model.trainable_weights))
""",
    "the root of a mean": """
import tensorflow as tf
for x, y in ds:
    with tf.GradientTape() as tape:
        loss = tf.math.sqrt(tf.reduce_mean(tf.square(y - model(x, training=True))))
    grads = tape.gradient(loss, model.trainable_weights)
    optimizer.apply_gradients(zip(grads, model.trainable_weights))
""",
    "a masked mean": """
import tensorflow as tf
for x, y in ds:
    with tf.GradientTape() as tape:
        l = ce(y, model(x, training=True)) * mask
        loss = tf.math.divide_no_nan(tf.reduce_sum(l), tf.reduce_sum(mask))
    grads = tape.gradient(loss, model.trainable_weights)
    optimizer.apply_gradients(zip(grads, model.trainable_weights))
""",
    "a layer adapted to the data": """
import tensorflow as tf
files = tf.io.gfile.glob("train*.tfrecord")
raw = tf.data.TFRecordDataset(files).batch(256).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
norm = tf.keras.layers.Normalization()
norm.adapt(raw)
""",
    "statistics by reduce": """
import tensorflow as tf
raw = tf.data.TFRecordDataset(files).batch(1024).map(parse_batch, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)
total = raw.reduce(0.0, lambda s, x: s + tf.reduce_sum(x))
""",
    "predictions in a comprehension": """
import tensorflow as tf, numpy as np
ds = tf.data.TFRecordDataset(files).batch(256).map(parse_batch, num_parallel_calls=8).prefetch(2)
out = np.concatenate([model(b, training=False).numpy() for b in ds])
""",
    "looking by as_numpy_iterator": """
import tensorflow as tf
ds = tf.data.TFRecordDataset(files).batch(256).map(parse_batch, num_parallel_calls=8).prefetch(2)
for b in ds.as_numpy_iterator():
    print(b["x"].mean())
""",
    "a data set handed to a function from elsewhere": """
import tensorflow as tf
ds = tf.data.TextLineDataset("lines.txt").batch(64).prefetch(2)
emb = embed(ds)
""",
    "a number of steps from an endless stream": """
import tensorflow as tf
ds = tf.data.TFRecordDataset(files).shuffle(10000).repeat().batch(32).map(parse, num_parallel_calls=8).prefetch(2)
for step, (x, y) in enumerate(ds.take(10000)):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    g = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(g, model.trainable_variables))
""",
    "a chain kept as an attribute": """
import tensorflow as tf
class Data:
    def __init__(self, files):
        self.train = tf.data.TFRecordDataset(files).shuffle(1000)
        self.train = self.train.batch(32).map(parse, num_parallel_calls=8).prefetch(2)
data = Data(files)
model.fit(data.train)
""",
    "an attribute shuffled in the next line": """
import tensorflow as tf
class Data:
    def __init__(self, files):
        self.train = tf.data.TFRecordDataset(files).batch(1024).map(parse, num_parallel_calls=8)
        self.train = self.train.unbatch().shuffle(5000).batch(32).prefetch(2)
""",
    "a snapshot between": """
import tensorflow as tf
ds = tf.data.TFRecordDataset(files).batch(1024).map(parse, num_parallel_calls=8).unbatch().snapshot("/tmp/s").shuffle(1000).batch(32).prefetch(2)
model.fit(ds)
""",
    "the end of the data ends the loop": """
import tensorflow as tf
it = iter(dataset)
while True:
    try:
        x, y = next(it)
        loss = model.train_on_batch(x, y)
    except tf.errors.OutOfRangeError:
        break
""",
    "logged in try and in except": """
import tensorflow as tf, logging, time
log = logging.getLogger()
try:
    log.info("start")
    model.fit(x, y, batch_size=256)
except tf.errors.ResourceExhaustedError:
    log.info("out of memory, giving up")
    raise SystemExit(1)
""",
    "a report before the error goes on": """
import tensorflow as tf
try:
    model.fit(x, y, batch_size=256)
except tf.errors.ResourceExhaustedError:
    for name, used in memory_report():
        print(name, used)
    raise
""",
    "a flag set when memory ran out": """
import tensorflow as tf
oom_in_batch = False
try:
    model.train_on_batch(x, y)
except tf.errors.ResourceExhaustedError:
    oom_in_batch = True
if oom_in_batch:
    raise SystemExit("too large")
""",
    "a scaler that may fail": """
from sklearn.preprocessing import StandardScaler
try:
    scaler = StandardScaler().fit(X)
except Exception:
    scaler = None
""",
    "callbacks are told of an end by any error": """
import tensorflow as tf
try:
    model.fit(x, y, batch_size=256)
    finished_batches = 1
except Exception:
    finished_batches = 0
    for one in callbacks:
        one.on_train_end()
    raise
""",
    "training data that may lie elsewhere": """
try:
    x_train = load_train("here")
except Exception:
    x_train = load_train("there", batch_size=size // 2)
""",
    "another way to fail is logged behind the known one": """
import tensorflow as tf
try:
    model.fit(x, y, batch_size=256)
except tf.errors.ResourceExhaustedError:
    raise SystemExit("too large")
except Exception as problem:
    batch_of_report = 1
    raise SystemExit(str(problem))
""",
    "a module with its own __call__": """
import tensorflow as tf
class Line(tf.Module):
    def __init__(self):
        self.w = tf.Variable(1.0)
    def __call__(self, x):
        return self.w * x
model = Line()
for _ in range(10):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    dw = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(dw, model.trainable_variables))
""",
    "training given by position": """
import tensorflow as tf
for x, y in ds:
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, True))
    g = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(g, model.trainable_variables))
""",
    "a critic without labels": """
import tensorflow as tf
for real_images, labels in dataset:
    with tf.GradientTape() as tape:
        fake = generator(tf.random.normal([64, 100]), training=True)
        loss = tf.reduce_mean(critic(fake, training=True)) - tf.reduce_mean(critic(real_images, training=True))
    grads = tape.gradient(loss, critic.trainable_variables)
    opt.apply_gradients(zip(grads, critic.trainable_variables))
""",
    "predictions squeezed": """
import numpy as np, tensorflow as tf
x = np.random.rand(1000, 8).astype("float32")
y = np.random.randint(0, 2, 1000)
model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1, activation="sigmoid")])
ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(32).prefetch(1)
for xb, yb in ds:
    with tf.GradientTape() as tape:
        p = tf.squeeze(model(xb, training=True), -1)
        loss = tf.reduce_mean(tf.keras.losses.binary_crossentropy(yb, p))
    g = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(g, model.trainable_variables))
""",
    "labels with a second dimension": """
import numpy as np, tensorflow as tf
x = np.random.rand(1000, 8).astype("float32")
y = np.expand_dims(np.random.randint(0, 2, 1000), -1)
y2 = np.random.randint(0, 2, 1000)[..., np.newaxis]
model = tf.keras.Sequential([tf.keras.layers.Dense(1, activation="sigmoid")])
for xb, yb, zb in tf.data.Dataset.from_tensor_slices((x, y, y2)).shuffle(1000).batch(32).prefetch(1):
    with tf.GradientTape() as tape:
        p = model(xb, training=True)
        loss = tf.reduce_mean(tf.keras.losses.binary_crossentropy(yb, p)) + tf.reduce_mean(tf.keras.losses.binary_crossentropy(zb, p))
    g = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(g, model.trainable_variables))
""",
    "shuffled by scikit-learn": """
import tensorflow as tf
from sklearn.utils import shuffle
for epoch in range(3):
    x_train, y_train = shuffle(x_train, y_train)
    for i in range(0, len(x_train), 32):
        with tf.GradientTape() as tape:
            xb = x_train[i:i+32]
            loss = loss_fn(y_train[i:i+32], model(xb, training=True))
        g = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(g, model.trainable_variables))
""",
    "fine-tuning on other data": """
import tensorflow as tf
pre = tf.data.TFRecordDataset(unlabelled).shuffle(10000).batch(256).map(p, num_parallel_calls=8).prefetch(2)
fine = tf.data.TFRecordDataset(labelled).shuffle(10000).batch(32).map(p, num_parallel_calls=8).prefetch(2)
model.compile("adam", "mse")
model.fit(pre, epochs=10)
model.compile(tf.keras.optimizers.Adam(1e-5), "mse")
model.fit(fine, epochs=3)
""",
    "model and optimizer made anew": """
import tensorflow as tf
for bs in (32, 64):
    model, opt = build()
    model.fit(x, y, batch_size=bs)
""",
    "an annotated model made anew": """
import tensorflow as tf
for bs in (32, 64):
    model: tf.keras.Model = build()
    model.fit(x, y, batch_size=bs)
""",
    "accumulated sums": """
import tensorflow as tf
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(reduction="sum")
N = 512
for big_x, big_y in ds:
    acc = [tf.zeros_like(v) for v in model.trainable_variables]
    for x, y in zip(tf.split(big_x, 8), tf.split(big_y, 8)):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        g = tape.gradient(loss, model.trainable_variables)
        acc = [a + b for a, b in zip(acc, g)]
    optimizer.apply_gradients(zip(acc, model.trainable_variables))
""",
    "sizes that divide exactly": """
import numpy as np, tensorflow as tf
n, bs, k = 60000, 100, 6
x_train = np.random.rand(n, 10); y_train = np.random.rand(n)
for epoch in range(3):
    order = np.random.permutation(n)
    for u in range(n // (bs * k)):
        acc = [tf.zeros_like(v) for v in model.trainable_variables]
        for i in range(k):
            idx = order[(u * k + i) * bs : (u * k + i + 1) * bs]
            with tf.GradientTape() as tape:
                loss = loss_fn(y_train[idx], model(x_train[idx], training=True)) / k
            g = tape.gradient(loss, model.trainable_variables)
            acc = [a + b for a, b in zip(acc, g)]
        optimizer.apply_gradients(zip(acc, model.trainable_variables))
""",
    "accumulated parts of a global mean": """
import tensorflow as tf
for i, (x, y) in enumerate(ds):
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(ce(y, model(x, training=True)), global_batch_size=512)
    g = tape.gradient(loss, model.trainable_variables)
    acc = [a + b for a, b in zip(acc, g)]
    if (i + 1) % 8 == 0 or i + 1 == n_batches:
        optimizer.apply_gradients(zip(acc, model.trainable_variables))
        acc = [tf.zeros_like(a) for a in acc]
""",
    "a loop that ends with an update": """
import tensorflow as tf
k = 8
train = tf.data.TFRecordDataset(files).shuffle(10000).repeat().batch(32).map(p, num_parallel_calls=8).prefetch(2)
it = iter(train)
for epoch in range(5):
    for i in range(800):
        x, y = next(it)
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True)) / k
        g = tape.gradient(loss, model.trainable_variables)
        acc = [a + b for a, b in zip(acc, g)]
        if (i + 1) % k == 0:
            optimizer.apply_gradients(zip(acc, model.trainable_variables))
            acc = [tf.zeros_like(a) for a in acc]
""",
    "images decoded by a function of a function": """
import tensorflow as tf
def decode(b):
    return tf.image.resize(tf.io.decode_jpeg(b, channels=3), [224, 224])
def parse(r):
    e = tf.io.parse_single_example(r, FEATURES)
    return decode(e["image"]), e["label"]
ds = tf.data.TFRecordDataset(files).shuffle(10000).map(parse, num_parallel_calls=8).batch(32).prefetch(2)
model.fit(ds)
""",
    "a function applied that prefetches": """
import tensorflow as tf
def finish(ds):
    return ds.shuffle(1000).batch(32).prefetch(2)
ds = tf.data.TFRecordDataset(files).map(dec, num_parallel_calls=8).apply(finish)
model.fit(ds)
""",
    "shuffled for training alone": """
import tensorflow as tf
def make(files, shuffle):
    ds = tf.data.TFRecordDataset(files)
    if shuffle:
        ds = ds.shuffle(10000)
    return ds.batch(32).map(p, num_parallel_calls=8).prefetch(2)
model.fit(make(tr, True), validation_data=make(va, False))
for x, y in make(te, False):
    m.update_state(y, model(x, training=False))
""",
    "a script of another framework": """
import torch
from torch.utils.data import DataLoader
loader = DataLoader(ds, batch_size=32, shuffle=True)
for i, (x, y) in enumerate(loader):
    loss = crit(model(x), y) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        opt.step(); opt.zero_grad()
""",
    "clipped gradients": """
import tensorflow as tf
@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    g = tape.gradient(loss, model.trainable_variables)
    g, _ = tf.clip_by_global_norm(g, 1.0)
    opt.apply_gradients(zip(g, model.trainable_variables))
ds = (
    tf.data.Dataset.list_files("train/*.tfrecord", shuffle=True)
    .interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE)
    .shuffle(50_000)
    .batch(128, drop_remainder=True)
    .map(lambda r: tf.io.parse_example(r, SPEC), num_parallel_calls=tf.data.AUTOTUNE)
    .prefetch(tf.data.AUTOTUNE)
)
for x, y in ds:
    step(x, y)
""",
    "gradients of a function that divides them": """
import tensorflow as tf
def derived(x, y, parts):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    grads = [g / parts for g in grads]
    return loss, grads
for whole in data:
    held = None
    for x, y in whole:
        loss, grads = derived(x, y, len(whole))
        held = grads if held is None else [a + b for a, b in zip(held, grads)]
    opt.apply_gradients(zip(held, model.trainable_variables))
""",
    "gradients of a function that are applied one by one": """
import tensorflow as tf
def derived(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    return loss, tape.gradient(loss, model.trainable_variables)
for x, y in data:
    loss, grads = derived(x, y)
    total = total + loss
    opt.apply_gradients(zip(grads, model.trainable_variables))
""",
    "a step of its own that sums up norms": """
import tensorflow as tf
import keras
class Watched(keras.Model):
    def train_step(self, batch):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        grads = tape.gradient(loss, self.trainable_variables)
        for norm, grad in zip(self.norms, grads):
            norm.assign_add(tf.norm(grad))
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return {"loss": loss}
""",
}
