"""A training of some twenty seconds, as an ordinary script that tells what took how long.

`timed_training.py die`: the first attempt is killed behind its first epoch.
"""

import os
import signal
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

import anybatch as ab
from anybatch.handover import received_orders
from anybatch.train.checkpoint_keeper import Watching
from anybatch.train.checkpoint_writer import Writer

IMPORTED = time.time()
BATCH, BATCHES, EPOCHS = 128, 40, 12


def say(*words) -> None:
    print(*words, file=sys.stderr, flush=True)


def supervisor_seconds() -> float:
    """Return the processor time of whoever has started this process: a supervisor, or one that waits."""
    fields = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Cost:
    """What signs of life and states take: all the time of the training thread, of others the processor's."""

    seconds = 0.0

    @classmethod
    def count(cls, owner: type, name: str, clock) -> None:
        original = getattr(owner, name)

        def counting(self, *args, **options):
            start = clock()
            try:
                return original(self, *args, **options)
            finally:
                cls.seconds += clock() - start

        setattr(owner, name, counting)


Cost.count(Watching, "_save", time.perf_counter)
Cost.count(Watching, "_beat", time.perf_counter)
Cost.count(Writer, "_tried", time.thread_time)


class Watch(keras.callbacks.Callback):
    """Begins behind the first epoch, in which everything is traced."""

    began = spent = 0.0
    first = True

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            self.began, self.spent = time.perf_counter(), Cost.seconds + supervisor_seconds()

    def on_train_batch_end(self, batch, logs=None):
        if self.first:
            self.first = False
            say("first", time.time() - IMPORTED)

    def on_epoch_end(self, epoch, logs=None):
        if sys.argv[1:] == ["die"] and received_orders().attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_train_end(self, logs=None):
        say("seconds", time.perf_counter() - self.began)
        say("cost", Cost.seconds + supervisor_seconds() - self.spent)


def main() -> None:
    keras.utils.set_random_seed(1)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(256, activation="relu"),
            layers.Dense(10),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    random = np.random.default_rng(0)
    x = random.normal(size=(BATCHES * BATCH, 32, 32, 3)).astype("float32")
    stream = ab.from_arrays((x, random.integers(0, 10, len(x)))).shuffle(seed=1).batch(BATCH)
    ab.fit(model, stream, micro_batch_size=BATCH, epochs=EPOCHS, verbose=0, callbacks=[Watch()])


if __name__ == "__main__":
    main()
