"""TensorFlow in quiet, before anything plans."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: F401
