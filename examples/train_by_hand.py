"""A loop written by hand, whose batches are split: `gradients` weighs the parts, the update stays yours.

Run it with `python examples/train_by_hand.py`.
"""

from typing import Any

import keras
import tensorflow as tf

import anybatch as ab


def main(steps: int = 40) -> None:
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((10,)), keras.layers.Dense(32, activation="tanh"), keras.layers.Dense(1)]
    )
    optimizer = keras.optimizers.Adam(0.01)

    def loss(x: Any, y: Any) -> Any:
        return tf.reduce_mean(tf.square(model(x, training=True) - y))

    for step in range(steps):
        x = tf.random.stateless_normal((1000, 10), seed=(step, 0))
        y = tf.reduce_sum(x, axis=1, keepdims=True)
        variables = model.trainable_variables
        gradients, value = ab.gradients(loss, variables, (x, y), reduction="mean", micro_batch_size=300)
        optimizer.apply(gradients, variables)
        if step % 10 == 9:
            print(f"step {step + 1}: loss {float(value):.4f}")


if __name__ == "__main__":
    main()
