"""Two hosts for tests that need a network."""

from collections.abc import Iterator

import pytest

from tests.scale.line import Line, two_hosts


@pytest.fixture
def line() -> Iterator[Line]:
    with two_hosts() as found:
        yield found
