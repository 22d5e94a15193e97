"""The order of the tests: those that take longest come first, so that none is left alone in the end."""

import pytest

collect_ignore = ["conftest.py"]
"""There are no examples in it, and its name is not the only one of its kind."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
