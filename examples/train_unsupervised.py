"""Models without labels: an autoencoder, a variational one, and one that compares samples.

The first two are means over samples and can be split. The third looks at all pairs of its batch: anybatch
says so, and keeping the batch whole with `keras.remat` is the way to make it fit. (`keras.RematScope` is the
same for all layers made in it; on TensorFlow it fails for layers that are told whether they train.)

Run it with `python examples/train_unsupervised.py`.
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
    print("\nthe same, kept whole: its activations are computed again on the way back")
    print(ab.fit(contrastive(again=True), x, batch_size=500).plan)


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

    def __init__(self, again: bool) -> None:
        super().__init__()
        self.noise = layers.GaussianNoise(0.1)
        self.hidden = layers.Dense(256, activation="relu")
        self.projection = layers.Dense(8)
        self.seen = keras.remat(self.projected) if again else self.projected

    def projected(self, inputs: Any) -> Any:
        return ops.normalize(self.projection(self.hidden(inputs)), axis=-1)

    def call(self, inputs: Any, training: Any = None) -> Any:
        return tuple(self.seen(self.noise(inputs, training=training)) for _ in range(2))

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
