"""Models without labels: an autoencoder, a variational one, and one that compares samples.

The first two are means over samples and can be split. The third looks at all pairs of its batch: anybatch
says so, and keeping the batch whole with `keras.remat` is the way to make it fit, shown under a limit that
has no room for it otherwise. (`keras.RematScope` is the same for all layers made in it; on TensorFlow it
fails for layers that are told whether they train.)

Run it with `python examples/train_unsupervised.py`.
"""

import os
from typing import Any

# what one training has taken goes back to the system, so that the next one is planned as if it were the first
os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "true")

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

import anybatch as ab

PIXELS = 64
NARROW, WIDE, BLOCKS = 16, 4096, 8
PLENTY = "64GiB"


def main(rows: int = 2000) -> None:
    x = np.random.default_rng(0).normal(size=(rows, 4)).astype("float32") @ np.ones((4, PIXELS), "float32")
    print("an autoencoder")
    print(ab.fit(autoencoder(), x, x, batch_size=500, epochs=2, micro_batch_size=128).plan)
    print("\na variational autoencoder")
    variational = Variational()
    variational.compile("adam")
    print(ab.fit(variational, x, batch_size=500, epochs=2, micro_batch_size=128).plan)
    compare(x, batch_size=rows // 2)


def compare(x: Any, batch_size: int) -> None:
    """Train a contrastive model in parts, of which it is told, and whole, activations computed again."""
    # TensorFlow's graph optimizer finds that the same is computed twice, and keeps it after all: an update
    # took 258 MiB instead of 288, and without these two 70
    tf.config.optimizer.set_experimental_options(
        {"constant_folding": False, "arithmetic_optimization": False}
    )
    peaks = []
    for name, again in (("whole", False), ("rematerialised", True)):
        planned = ab.plan(contrastive(again=again), x, batch_size=batch_size, memory=PLENTY)
        peaks.append(planned.predicted_peak_bytes or 0)
        print(f"\na contrastive model, {name}: predicted peak {peaks[-1] >> 20} MiB")
    # what planning has left in this process needs room, too
    between = (3 * peaks[0] + peaks[1]) // 4
    print(f"\nrematerialised under {between >> 20} MiB, the batch stays whole")
    print(ab.fit(contrastive(again=True), x, batch_size=batch_size, epochs=4, memory=between).plan)
    print("\nsplit although it cannot be")
    print(ab.fit(contrastive(), x, batch_size=batch_size, micro_batch_size=batch_size // 4).plan)


def autoencoder() -> keras.Model:
    model = keras.Sequential(
        [keras.Input((PIXELS,)), layers.Dense(8, activation="tanh"), layers.Dense(PIXELS)]
    )
    model.compile("adam", "mse")
    return model


class Variational(keras.Model):
    """Reconstruction and divergence, both means over samples, in `compute_loss`."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = layers.Dense(8)
        self.decoder = layers.Dense(PIXELS)
        self.seed = keras.random.SeedGenerator(1)

    def call(self, inputs: Any) -> Any:
        mean, log_variance = ops.split(self.encoder(inputs), 2, axis=-1)
        noise = keras.random.normal(ops.shape(mean), seed=self.seed)
        return self.decoder(mean + ops.exp(log_variance / 2) * noise), mean, log_variance

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: Any = True,
    ) -> Any:
        decoded, mean, log_variance = y_pred
        divergence = -0.5 * ops.mean(1 + log_variance - ops.square(mean) - ops.exp(log_variance))
        return ops.mean(ops.square(x - decoded)) + 0.1 * divergence


class Block(layers.Layer):
    """Narrow outside and wide inside; the inside need not be kept until the way back."""

    def __init__(self, again: bool) -> None:
        super().__init__()
        self.wide = layers.Dense(WIDE, activation="relu")
        self.narrow = layers.Dense(NARROW)
        self.seen = keras.remat(self.passed) if again else self.passed

    def passed(self, inputs: Any) -> Any:
        return inputs + self.narrow(self.wide(inputs))

    def call(self, inputs: Any) -> Any:
        return self.seen(inputs)


class Contrastive(keras.Model):
    """Pulls two noisy views of a sample together, and pushes all other samples of the batch away."""

    def __init__(self, again: bool) -> None:
        super().__init__()
        self.again = again
        self.noise = layers.GaussianNoise(0.1)
        self.first = layers.Dense(NARROW)
        self.blocks = [Block(again) for _ in range(BLOCKS)]

    def get_config(self) -> dict[str, Any]:
        """Return what the memory depends on, besides weights and inputs: plans are remembered by it."""
        return {"again": self.again}

    def projected(self, inputs: Any) -> Any:
        seen = self.first(inputs)
        for block in self.blocks:
            seen = block(seen)
        return ops.normalize(seen, axis=-1)

    def call(self, inputs: Any, training: Any = None) -> Any:
        return tuple(self.projected(self.noise(inputs, training=training)) for _ in range(2))

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: Any = True,
    ) -> Any:
        one, other = y_pred
        alike = ops.matmul(one, ops.transpose(other)) / 0.1
        return ops.mean(ops.logsumexp(alike, axis=1) - ops.diagonal(alike))


def contrastive(*, again: bool = False) -> keras.Model:
    model = Contrastive(again)
    model.compile("adam")
    return model


if __name__ == "__main__":
    main()
