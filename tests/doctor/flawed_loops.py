"""Training loops written by hand with one known trap each, marked as in `flawed_scripts`."""

from tests.doctor.several_scripts import several

LOOPS = several("""
import tensorflow as tf

size, parts = 16, 4
np.random.shuffle(x)
for step in range(len(x) // size):  # AB704 as well
    total = None
    for part in range(parts):
        xs = x[step * size + part * size : (step + 1) * size + part * size]  # AB701 error
        with tf.GradientTape() as tape:
            loss = loss_fn(xs, model(xs, training=True)) / parts
        grads = tape.gradient(loss, model.trainable_variables)
        total = grads if total is None else [a + b for a, b in zip(total, grads)]
    optimizer.apply_gradients(zip(total, model.trainable_variables))
----
import tensorflow as tf

for x, y in data:
    with tf.GradientTape() as tape:  # AB702 error
        scores = model(x, training=True)
        loss = tf.reduce_mean(scores)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
----
import tensorflow as tf

held = [tf.zeros_like(one) for one in model.trainable_variables]
for number, (x, y) in enumerate(data):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    held = [tf.add(a, b) for a, b in zip(held, grads)]
    if (number + 1) % 4 == 0 or number + 1 == len(data):
        optimizer.apply_gradients(zip(held, model.trainable_variables))  # AB703 warning
        held = [tf.zeros_like(one) for one in model.trainable_variables]
----
import tensorflow as tf

def derived(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    return loss, tape.gradient(loss, model.trainable_variables)

for whole in data:
    held = None
    for x, y in whole:
        loss, grads = derived(x, y)
        held = grads if held is None else [a + b for a, b in zip(held, grads)]
    optimizer.apply_gradients(zip(held, model.trainable_variables))  # AB703 warning
----
import tensorflow as tf
import keras

class Summing(keras.Model):
    def train_step(self, batch):  # AB704 as well
        x, y = batch
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        grads = tape.gradient(loss, self.trainable_variables)
        for number in range(len(self.sums)):
            self.sums[number].assign_add(grads[number])
        self.seen.assign_add(1)
        tf.cond(self.seen == self.steps, self.update, lambda: None)
        return {"loss": loss}

    def update(self):
        self.optimizer.apply_gradients(zip(self.sums, self.trainable_variables))  # AB703 warning
        self.seen.assign(0)
        for one in self.sums:
            one.assign(tf.zeros_like(one))
----
import tensorflow as tf
import keras

class Summing(keras.Model):
    def train_step(self, batch):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True)) / self.steps
        grads = tape.gradient(loss, self.trainable_variables)
        for one, more in zip(self.sums, grads):
            one.assign_add(more)
        self.seen.assign_add(1)
        if self.seen == self.steps:  # AB704 warning
            self.optimizer.apply_gradients(zip(self.sums, self.trainable_variables))
            self.seen.assign(0)
        return {"loss": loss}
----
import tensorflow as tf

held = [tf.Variable(tf.zeros_like(one)) for one in model.trainable_variables]
for number, (x, y) in enumerate(data):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    for one, more in zip(held, grads):
        one.assign_add(more)
    if number % 8 == 7 or number + 1 == len(data):
        optimizer.apply_gradients(zip(held, model.trainable_variables))  # AB703 warning
----
import tensorflow as tf

held = [tf.zeros_like(one) for one in model.trainable_variables]
for number, (x, y) in enumerate(data):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True)) / 4
    grads = tape.gradient(loss, model.trainable_variables)
    held = [a + b for a, b in zip(held, grads)]
    if (number + 1) % 4 == 0:  # AB704 warning
        optimizer.apply_gradients(zip(held, model.trainable_variables))
        held = [tf.zeros_like(one) for one in model.trainable_variables]
----
import numpy as np
import tensorflow as tf

x, y = np.random.rand(64, 3), np.random.randint(0, 2, 64)
model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1, activation="sigmoid")])
for a, b in tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64).batch(8).prefetch(1):
    with tf.GradientTape() as tape:
        out = model(a, training=True)
        loss = tf.reduce_mean(tf.keras.losses.binary_crossentropy(b, out))  # AB705 error
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
----
import tensorflow as tf
from keras import losses

for x, y in data:
    with tf.GradientTape() as tape:
        loss = losses.mean_squared_error(y, model(x, training=True))  # AB706 warning
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
----
import tensorflow as tf

criterion = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
for x, y in data:
    with tf.GradientTape() as tape:
        scores = model(x, training=True)
        loss = criterion(y, scores)  # AB706 warning
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
----
import tensorflow as tf
from tensorflow.keras import layers

model = tf.keras.Sequential([layers.Dense(8), layers.Dropout(0.5), layers.Dense(2)])

@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))  # AB707 warning
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
----
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
for x, y in data:
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))  # AB707 note
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
""")
