"""The order of the tests, and an allocator that keeps nothing from one test to the next."""

import os
import signal
import sys

import pytest

collect_ignore = ["conftest.py"]
"""There are no examples in it, and its name is not the only one of its kind."""
GIVE_BACK = "TF_ONEDNN_USE_SYSTEM_ALLOCATOR"
# TensorFlow looks at it when it makes its first tensor, which some modules do while they are imported
os.environ[GIVE_BACK] = "true"
# in the background of a shell Ctrl-C is ignored, and what tests start would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let those that take longest come first, so that none is left alone in the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """Have TensorFlow choose, by its first tensor, an allocator that gives back what a test has taken.

    With oneDNN it keeps everything for good, and the next plan in the same process finds room for any batch.
    The processes that tests start have the allocator that users have.
    """
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None:
        tensorflow.zeros(1)
    del os.environ[GIVE_BACK]
