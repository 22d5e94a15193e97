"""Keras' own `fit` on several workers: `keras_under_strategy.py` in each of them, with `TF_CONFIG`."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main() -> None:
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    import keras
    import numpy as np

    with strategy.scope():
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    model.fit(np.ones((8, 3)), np.ones((8, 1)), batch_size=4, verbose=0)
    print("trained", flush=True)


if __name__ == "__main__":
    main()
