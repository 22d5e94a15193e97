"""TensorFlow in quiet, and the precision that a test asks for."""

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras


@pytest.fixture
def double_precision() -> Iterator[None]:
    before = keras.config.floatx()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx(before)
    keras.config.set_dtype_policy(before)
