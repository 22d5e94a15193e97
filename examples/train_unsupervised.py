"""Models without labels: an autoencoder, a variational one, and one that compares samples.

The first two are sums over samples and are split exactly. The third looks at all pairs of its batch: anybatch
says so, and keeping the batch whole with `keras.RematScope` is the way to make it fit. Run it with
`python examples/train_unsupervised.py`.
"""

from typing import Any

import keras
import numpy as np
from keras import layers, ops

import anybatch as ab

PIXELS = 64


def main(rows: int = 2000) -> None:
    x = np.random.default_rng(0).normal(size=(rows, 4)).astype("float32") @ np.ones((4, PIXELS), "float32")
    print("an autoencoder")
    print(ab.fit(autoencoder(), x, x, batch_size=500, epochs=2, micro_batch_size=128).plan)
    print("\na variational autoencoder")
    variational = Variational()
    variational.compile("adam")
    print(ab.fit(variational, x, batch_size=500, epochs=2, micro_batch_size=128).plan)
    print("\na contrastive model, split although it cannot be")
    print(ab.fit(contrastive(), x, batch_size=500, micro_batch_size=125).plan)
    print("\nthe same, kept whole: activations are computed again on the way back")
    with keras.RematScope(mode="full"):
        whole = contrastive()
    print(ab.fit(whole, x, batch_size=500).plan)


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


class Contrastive(keras.Model):
    """Pulls two noisy views of a sample together, and pushes all other samples of the batch away."""

    def __init__(self) -> None:
        super().__init__()
        self.noise = layers.GaussianNoise(0.1)
        self.hidden = layers.Dense(256, activation="relu")
        self.projection = layers.Dense(8)

    def call(self, inputs: Any, training: Any = None) -> Any:
        views = [self.projection(self.hidden(self.noise(inputs, training=training))) for _ in range(2)]
        return tuple(ops.normalize(view, axis=-1) for view in views)

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


def contrastive() -> keras.Model:
    model = Contrastive()
    model.compile("adam")
    return model


if __name__ == "__main__":
    main()
