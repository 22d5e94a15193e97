"""Twenty updates made in parts, beside the same updates made of whole batches."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

import anybatch as ab
from benchmarks.attempt import Outcome, Proof
from benchmarks.contenders.training import Seen
from benchmarks.job import Job

UPDATES = 20
Array = NDArray[np.float32]
Train = Callable[["Task", keras.Model, Array, Array], None]


@dataclass(frozen=True, slots=True)
class Task:
    """A model and how its epochs are cut into batches, batches into parts."""

    optimizer: Callable[[], keras.optimizers.Optimizer]
    records: int
    batch: int
    part: int

    @property
    def epochs(self) -> int:
        """Return how many epochs make the updates."""
        return UPDATES // -(-self.records // self.batch)

    def arrays(self) -> tuple[Array, Array]:
        """Return the same samples every time."""
        random = np.random.default_rng(0)
        x = random.normal(size=(self.records, 32)).astype("float32")
        noise = random.normal(size=(self.records, 1))
        return x, (np.sin(x[:, :1] * 2) + 0.1 * noise).astype("float32")

    def model(self, **more: Any) -> keras.Model:
        """Return the same model every time."""
        keras.utils.set_random_seed(1)
        hidden = keras.layers.Dense(64, activation="tanh", kernel_regularizer=keras.regularizers.L2(1e-3))
        made = keras.Sequential([keras.Input((32,)), hidden, keras.layers.Dense(1)])
        optimizer = self.optimizer()
        if more:
            optimizer = type(optimizer).from_config(optimizer.get_config() | more)
        made.compile(optimizer, "mse", metrics=[Seen()])
        return made


def _scheduled() -> keras.optimizers.Optimizer:
    schedule = keras.optimizers.schedules.CosineDecay(0.05, UPDATES)
    return keras.optimizers.SGD(schedule, momentum=0.9, clipnorm=0.1)


# by the name of the case; 1,000 records are batches of 300, 300, 300 and 100: the last one is short
TASKS = {
    "plain": Task(lambda: keras.optimizers.Adam(1e-2), records=2_048, batch=512, part=128),
    "usual": Task(_scheduled, records=1_000, batch=300, part=100),
}


def ours(job: Job) -> "UpdatesAttempt":
    """`ab.fit` in parts."""
    return UpdatesAttempt(TASKS[job.case], in_parts)


def keras_steps(job: Job) -> "UpdatesAttempt":
    """`model.fit` on parts, the optimizer with `gradient_accumulation_steps`."""
    task = TASKS[job.case]
    return UpdatesAttempt(task, parts_as_batches, {"gradient_accumulation_steps": task.batch // task.part})


def articles(job: Job) -> "UpdatesAttempt":
    """The loop of the articles."""
    return UpdatesAttempt(TASKS[job.case], summed_gradients)


def permuted(job: Job) -> "UpdatesAttempt":
    """Whole batches whose samples come in another order."""
    return UpdatesAttempt(TASKS[job.case], permuted_batches)


@dataclass(slots=True)
class UpdatesAttempt:
    """Make all updates and compare the weights with those of whole batches."""

    task: Task
    train: Train
    more: dict[str, Any] = field(default_factory=dict)  # of the optimizer

    def warm_up(self) -> None:
        """Nothing is timed here."""

    def check(self) -> Proof:
        """Return how many samples were trained on."""
        return self.run().proof

    def prepare(self) -> None:
        """Nothing to describe."""

    def run(self) -> Outcome:
        """Train both ways."""
        model = trained(self.task, self.train, self.more)
        whole = trained(self.task, whole_batches, {})
        return Outcome(
            {"records": samples_of(model) * self.task.epochs},
            weights_difference=relative_difference(weights_of(model), weights_of(whole)),
            updates=int(model.optimizer.iterations),
        )


def trained(task: Task, train: Train, more: dict[str, Any]) -> keras.Model:
    """Return the model after its updates."""
    model = task.model(**more)
    train(task, model, *task.arrays())
    return model


def weights_of(model: keras.Model) -> Array:
    """Return all weights as one vector."""
    return np.concatenate([np.asarray(weight).ravel() for weight in model.get_weights()])


def samples_of(model: keras.Model) -> int:
    """Return how many samples the last epoch had."""
    return round(float(model.get_metrics_result()["seen"]))


def relative_difference(weights: Array, reference: Array) -> float:
    """Return the length of the difference, relative to that of the reference."""
    return float(np.linalg.norm(weights - reference) / np.linalg.norm(reference))


def whole_batches(task: Task, model: keras.Model, x: Array, y: Array) -> None:
    """Train as Keras does."""
    model.fit(x, y, batch_size=task.batch, epochs=task.epochs, shuffle=False, verbose=0)


def permuted_batches(task: Task, model: keras.Model, x: Array, y: Array) -> None:
    """Train on the same batches, each in another order: what rounding alone does."""
    random = np.random.default_rng(5)
    starts = range(0, len(x), task.batch)
    order = np.concatenate([random.permutation(range(s, min(s + task.batch, len(x)))) for s in starts])
    whole_batches(task, model, x[order], y[order])


def in_parts(task: Task, model: keras.Model, x: Array, y: Array) -> None:
    """Train with `ab.fit`, in parts of at most the given size."""
    ab.fit(
        model,
        x,
        y,
        batch_size=task.batch,
        micro_batch_size=task.part,
        epochs=task.epochs,
        shuffle=False,
        verbose=0,
    )


def parts_as_batches(task: Task, model: keras.Model, x: Array, y: Array) -> None:
    """Train with batches of the size of a part; the optimizer was told to add up several."""
    model.fit(x, y, batch_size=task.part, epochs=task.epochs, shuffle=False, verbose=0)


def summed_gradients(task: Task, model: keras.Model, x: Array, y: Array) -> None:
    """Add up the gradients of the parts' means, then apply the sum."""
    for _ in range(task.epochs):
        model.reset_metrics()
        for start in range(0, len(x), task.batch):
            batch = slice(start, start + task.batch)
            total = sum_over_parts(model, x[batch], y[batch], task.part)
            model.optimizer.apply_gradients(zip(total, model.trainable_variables, strict=True))


def sum_over_parts(model: keras.Model, x: Array, y: Array, part: int) -> list[Any]:
    """Return the sum of the parts' gradients, not weighted and not divided."""
    parts = [gradients_of(model, x[low : low + part], y[low : low + part]) for low in range(0, len(x), part)]
    return [tf.add_n(gradients) for gradients in zip(*parts, strict=True)]


def gradients_of(model: keras.Model, x: Array, y: Array) -> list[Any]:
    """Return the gradients of the mean loss of some samples."""
    with tf.GradientTape() as tape:
        predicted = model(x, training=True)
        loss = model.compute_loss(x, y, predicted)
    model.compute_metrics(x, y, predicted)
    found: list[Any] = tape.gradient(loss, model.trainable_variables)
    return found
