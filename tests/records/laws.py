"""Laws that hold for whatever hypothesis finds: a few examples in every run, many more under `make soak`."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# the first example pays for TensorFlow's start, and large messages are what is wanted
settings.register_profile("laws", deadline=None, suppress_health_check=list(HealthCheck))

# every index is synced to the disk, which would take longer than all the rest
_IN_MEMORY = next((folder for folder in ["/dev/shm"] if Path(folder).is_dir()), None)


def law(
    *strategies: st.SearchStrategy[Any], examples: int, soak: int
) -> Callable[[Callable[..., None]], Any]:
    """Make a test of a law: of a function of an empty folder and of one value from each strategy."""

    def test_of(check: Callable[..., None]) -> Callable[..., None]:
        def once(drawn: tuple[Any, ...]) -> None:
            with TemporaryDirectory(dir=_IN_MEMORY) as folder:
                check(Path(folder), *drawn)

        # the name under which hypothesis keeps what failed
        once.__name__ = check.__name__

        @pytest.mark.parametrize("examples", [examples, pytest.param(soak, marks=pytest.mark.soak)])
        def test(examples: int) -> None:
            chosen = settings(settings.get_profile("laws"), max_examples=examples)
            chosen(given(st.tuples(*strategies))(once))()

        return test

    return test_of
