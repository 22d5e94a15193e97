"""Two outputs with loss weights and sample weights: every loss term is split by its own rule.

Run it with `python examples/train_two_outputs.py`.
"""

import keras
import numpy as np

import anybatch as ab


def main(rows: int = 4096) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, 20)).astype("float32")
    y = {"price": x[:, :1] * 3 + 1, "sold": (x[:, 1:2] > 0).astype("float32")}
    weights = {"price": random.uniform(0, 2, rows), "sold": np.ones(rows)}
    whole, split = (two_outputs() for _ in range(2))
    ab.fit(whole, x, y, sample_weight=weights, batch_size=512, epochs=2, shuffle=False, verbose=0)
    history = ab.fit(
        split, x, y, sample_weight=weights, batch_size=512, epochs=2, shuffle=False, micro_batch_size=100
    )
    print(history.plan)
    pairs = zip(split.get_weights(), whole.get_weights(), strict=True)
    print(f"largest difference to whole batches: {max(abs(a - b).max() for a, b in pairs):.1e}")


def two_outputs() -> keras.Model:
    keras.utils.set_random_seed(1)
    inputs = keras.Input((20,))
    hidden = keras.layers.Dense(64, activation="tanh", kernel_regularizer="l2")(inputs)
    outputs = {
        "price": keras.layers.Dense(1, name="price")(hidden),
        "sold": keras.layers.Dense(1, activation="sigmoid", name="sold")(hidden),
    }
    model = keras.Model(inputs, outputs)
    losses = {"price": keras.losses.Huber(reduction="sum"), "sold": "binary_crossentropy"}
    model.compile(keras.optimizers.AdamW(0.003), losses, loss_weights={"price": 0.01, "sold": 1.0})
    return model


if __name__ == "__main__":
    main()
