"""Arguments by two names: our own, and those that tf.data gives them."""

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def also_called(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that takes arguments by other names too: `also_called(batch_size="n")`.

    >>> @also_called(batch_size="n")
    ... def doubled(n):
    ...     return 2 * n
    >>> doubled(4), doubled(n=4), doubled(batch_size=4)
    (8, 8, 8)
    """

    def renamed(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters
        order = list(parameters)
        needed = {
            name: other
            for other, name in names.items()
            if parameters[name].default is inspect.Parameter.empty
        }

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            given = {*order[: len(args)], *kwargs}
            for other, name in names.items():
                if other in kwargs:
                    if name in given:
                        raise TypeError(
                            f"{function.__name__} takes `{name}`, which tf.data calls `{other}`, once; "
                            "it was given by both names"
                        )
                    kwargs[name] = kwargs.pop(other)
            for name, other in needed.items():
                if name not in given and other not in given:
                    raise TypeError(f"{function.__name__} needs `{name}`, which tf.data calls `{other}`")
            return function(*args, **kwargs)

        return call

    return renamed
