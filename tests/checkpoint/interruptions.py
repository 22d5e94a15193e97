"""Trainings that are interrupted, and what is left of them."""


class Interrupted(Exception):
    pass


def interrupting(at):
    import keras

    class Interrupt(keras.callbacks.Callback):
        left = at

        def on_train_batch_begin(self, batch, logs=None):
            type(self).left -= 1
            if self.left < 0:
                raise Interrupted

    return Interrupt()


def weights_after(model):
    return [weight.tobytes() for weight in model.get_weights()]
