"""The stream that users hold: an immutable description with the words of tf.data."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anybatch.errors import Damage
from anybatch.stream.batch import Batch
from anybatch.stream.cache import Cache, cache_path
from anybatch.stream.elsewhere import way_out
from anybatch.stream.epoch import Epoch
from anybatch.stream.explain import explained, measured
from anybatch.stream.filter import Filter
from anybatch.stream.functions import called
from anybatch.stream.identity import identity_of as identity_of_stage
from anybatch.stream.iterator import StreamIterator
from anybatch.stream.limits import LimitMemory, Prefetch
from anybatch.stream.map import Map, RandomMap
from anybatch.stream.names import also_called
from anybatch.stream.numbers import seed_number, whole_number
from anybatch.stream.order import addressed
from anybatch.stream.parts import PartIterator
from anybatch.stream.repeat import Repeat
from anybatch.stream.run import Run
from anybatch.stream.several import Several
from anybatch.stream.shuffle import Shuffle
from anybatch.stream.slices import Shard, Skip, Take
from anybatch.stream.stage import Operation, Stage
from anybatch.stream.supervised import Supervised, check_names
from anybatch.stream.windows import WindowShuffle
from anybatch.units import parse_size

_AUTOTUNE = -1


class Stream:
    """Records as a description of where they come from and what becomes of them.

    Nothing is read until it is iterated, and every operation gives a new stream. Arguments of tf.data
    that make no difference here (`num_parallel_calls`, `deterministic`, `name`) are accepted, and the others
    by the names they have there too: `batch(batch_size=4)`, `map(map_func=f)`, `take(count=9)`.

    >>> import numpy as np
    >>> import anybatch as ab
    >>> data = ab.from_arrays({"x": np.arange(6)}).map(lambda record: {"x": record["x"] ** 2}).batch(4)
    >>> [batch["x"].tolist() for batch in data], len(data)
    ([[0, 1, 4, 9], [16, 25]], 2)
    >>> place = iter(data)
    >>> _ = next(place)
    >>> state, place = place.get_state(), iter(data)
    >>> place.set_state(state)
    >>> next(place)["x"].tolist()
    [16, 25]
    """

    __slots__ = ("_runs", "_stage")

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._runs: list[Run] = []

    def __iter__(self) -> StreamIterator:
        run = Run()
        # only the newest: `stats` tells what is, not what was
        self._runs[:] = [run]
        return StreamIterator(self._stage, run)

    def __reduce__(self) -> Any:
        return Stream, (self._stage,)

    def __len__(self) -> int:
        return self._stage.length()

    def __bool__(self) -> bool:
        # not by its length, which is unknown behind a filter: as a `tf.data.Dataset`
        return True

    def __repr__(self) -> str:
        return f"Stream: {_written(self._stage)}"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            told = f"'Stream' object has no attribute {name!r}{way_out(name)}"
            raise AttributeError(told, name=name, obj=self)

    @property
    def corrupt(self) -> list[Damage]:
        """The ledger: `(file, offset, length, reason)` for every damaged stretch met so far.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> ab.from_arrays(np.arange(3)).corrupt  # files have damage, arrays have none
        []
        """
        return self._stage.damages()

    def shuffle(
        self,
        buffer_size: int | None = None,
        *,
        seed: int | None = 0,
        window: str | int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> "Stream":
        """Return every record exactly once, in an order that depends on the seed and the epoch alone.

        `buffer_size` is taken so that tf.data chains can be pasted, and not needed. `window="256MiB"`: blocks
        of neighbours in random order, 64 of them shuffled together, where random reads are dear; of
        compressed shards and behind `filter`, records of a window that is held within the limit.
        `reshuffle_each_iteration=False`: every epoch has the order of epoch 0, so that what `take` takes and
        `skip` leaves are apart in all of them.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> data = ab.from_arrays(np.arange(1_000)).shuffle(seed=7)
        >>> order = [int(number) for number in data]
        >>> sorted(order) == list(range(1_000)), order == list(range(1_000))
        (True, False)
        >>> order == [int(number) for number in data.epoch(1)]
        False
        """
        number = 0 if seed is None else seed_number(seed)
        # None is what tf.data calls its default, which is to shuffle anew
        anew = reshuffle_each_iteration is None or bool(reshuffle_each_iteration)
        if window is None:
            return Stream(Shuffle(self._stage, number, anew=anew))
        if addressed(self._stage) is None and not self._stage.batched:
            return Stream(WindowShuffle(self._stage, number, parse_size(window), anew))
        return Stream(Shuffle(self._stage, number, parse_size(window), anew))

    @also_called(map_func="fn")
    def map(
        self,
        fn: Callable[[Any], Any],
        num_parallel_calls: int | None = None,
        *,
        batched: bool = False,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> "Stream":
        """Return what `fn` makes of each record, or behind `batch` of each whole batch.

        `batched=True`: of columns of as many records as the engine likes, each record on its own.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> data = ab.from_arrays({"x": np.arange(4)})
        >>> doubled = data.map(lambda columns: {"x": 2 * columns["x"]}, batched=True).batch(4)
        >>> next(iter(doubled))["x"].tolist()
        [0, 2, 4, 6]
        """
        return Stream(Map(self._stage, called(fn, "map"), batched))

    def random_map(self, fn: Callable[[Any, Any], Any], *, seed: int = 0, batched: bool = False) -> "Stream":
        """Return `fn(record, rng)`; with `batched`, `fn(columns, seeds)`, one seed per record.

        The randomness depends on seed, epoch and record alone: it survives threads, workers and restarts. Two
        of them with one seed draw the same numbers for a record: give each its own.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> noisy = ab.from_arrays(np.zeros(3)).random_map(lambda x, rng: x + rng.normal(), seed=7)
        >>> once, again = list(noisy), list(noisy)
        >>> once == again, once == list(noisy.epoch(1))
        (True, False)
        """
        return Stream(RandomMap(self._stage, called(fn, "random_map"), seed_number(seed), batched))

    @also_called(predicate="fn")
    def filter(self, fn: Callable[[Any], Any], *, name: str | None = None) -> "Stream":
        """Return the elements for which `fn` is true.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> [int(number) for number in ab.from_arrays(np.arange(6)).filter(lambda number: number % 2 == 0)]
        [0, 2, 4]
        """
        return Stream(Filter(self._stage, called(fn, "filter")))

    @also_called(count="n")
    def take(self, n: int, *, name: str | None = None) -> "Stream":
        """Return the first `n` elements; -1 all of them, as in tf.data.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> [int(number) for number in ab.from_arrays(np.arange(6)).take(2)]
        [0, 1]
        """
        return self if n == -1 else Stream(Take(self._stage, whole_number(n, "take")))

    @also_called(count="n")
    def skip(self, n: int, *, name: str | None = None) -> "Stream":
        """Return all but the first `n` elements; -1 skips all of them, as in tf.data.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> [int(number) for number in ab.from_arrays(np.arange(6)).skip(4)]
        [4, 5]
        """
        return self.take(0) if n == -1 else Stream(Skip(self._stage, whole_number(n, "skip")))

    @also_called(num_shards="count")
    def shard(self, count: int, index: int, *, name: str | None = None) -> "Stream":
        """Return every `count`-th element from `index` on: parts are disjoint, complete and even.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> data = ab.from_arrays(np.arange(7))
        >>> [[int(number) for number in data.shard(2, index)] for index in (0, 1)]
        [[0, 2, 4, 6], [1, 3, 5]]
        """
        count, index = whole_number(count, "shard's count", 1), whole_number(index, "shard's index")
        if index >= count:
            raise ValueError(f"shard {index} of {count} does not exist; the last one is {count - 1}")
        return Stream(Shard(self._stage, count, index))

    @also_called(count="n")
    def repeat(self, n: int | None = None, *, name: str | None = None) -> "Stream":
        """Return the stream `n` times over, each time as the next epoch; None or -1 for ever.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> twice = ab.from_arrays(np.arange(100)).shuffle(seed=7).batch(100).repeat(2)
        >>> first, second = (batch.tolist() for batch in twice)
        >>> sorted(first) == sorted(second), first == second
        (True, False)
        """
        return Stream(Repeat(self._stage, None if n in {None, -1} else whole_number(n, "repeat")))

    def epoch(self, number: int) -> "Stream":
        """Return the stream as epoch `number` orders it; `iter(stream)` is epoch 0 every time.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> data = ab.from_arrays(np.arange(100)).shuffle(seed=7).batch(100)
        >>> orders = [next(iter(data.epoch(number))).tolist() for number in (0, 0, 1)]
        >>> orders[0] == orders[1], orders[0] == orders[2]
        (True, False)
        """
        return Stream(Epoch(self._stage, whole_number(number, "epoch")))

    @also_called(batch_size="n")
    def batch(
        self,
        n: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> "Stream":
        """Return batches of `n` records; the last one may be shorter unless dropped.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> data = ab.from_arrays(np.arange(5))
        >>> [batch.tolist() for batch in data.batch(2)]
        [[0, 1], [2, 3], [4]]
        >>> len(data.batch(2, drop_remainder=True))
        2
        """
        return Stream(Batch(self._stage, whole_number(n, "batch", 1), drop_remainder))

    def parts(self, most: int, *, epoch: int = 0, swept_bytes: int | None = None) -> PartIterator:
        """Return batches part by part, each of `most` records at most, and True with the last of each batch.

        A batch then never exists whole, unless a function is mapped over the whole of it: its size is
        bounded by time, not by memory. The value is None where all that is left of a batch is damaged.
        `swept_bytes` bounds what is held to read ahead where the page cache is smaller than the data.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> data = ab.from_arrays(np.arange(5)).batch(4)
        >>> [(part.tolist(), last) for part, last in data.parts(2)]
        [([0, 1], False), ([2, 3], True), ([4], True)]
        """
        if not self._stage.batched:
            raise ValueError("only a stream with batch in it has parts")
        run = Run(epoch=epoch, swept_bytes=swept_bytes)
        self._runs[:] = [run]
        return PartIterator(self._stage, run, whole_number(most, "parts", 1))

    def explain(self) -> str:
        """Return the plan as a table: every stage, and the bytes it is promised and will not exceed.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> data = ab.from_arrays(np.zeros((64, 256), "float32")).batch(16).limit_memory("64MiB")
        >>> print(data.explain())
        stage                  yields                  share of the limit
        ...
        together                                       64 MiB at most
        """
        return explained(self._stage)

    def stats(self) -> list[dict[str, Any]]:
        """Return what the newest iteration of this stream holds and waited for, stage by stage.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> data = ab.from_arrays(np.arange(6)).batch(2)
        >>> for batch in data:
        ...     pass
        >>> [(stage["stage"], stage["elements"]) for stage in data.stats()]
        [('batch(2)', 3), ('from_arrays (6 rows)', 6)]
        """
        return measured(self._runs)

    @also_called(buffer_size="n")
    def prefetch(self, n: int | None = None, *, name: str | None = None) -> "Stream":
        """Return the stream with `n` elements made ahead; None or AUTOTUNE: as many as serve.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> [batch.tolist() for batch in ab.from_arrays(np.arange(4)).batch(2).prefetch(1)]
        [[0, 1], [2, 3]]
        """
        depth = None if n in {None, _AUTOTUNE} else max(1, whole_number(n, "prefetch"))
        return Stream(Prefetch(self._stage, depth))

    def cache(self, path: str | os.PathLike[str] | None = None, *, name: str | None = None) -> "Stream":
        """Return the stream decoded once, by the first pass over it, and still shuffled anew each epoch.

        Kept in memory while the limit allows, else in files that are mapped; with `path` always in files, in
        that folder, where later runs use them again as long as files, features and functions are the same.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> data = ab.from_arrays(np.arange(100)).map(lambda number: number**2).cache().shuffle(seed=7)
        >>> sum(int(square) for square in data) == sum(int(square) for square in data.epoch(1))
        True
        """
        return Stream(Cache(self._stage, None if path is None else cache_path(path)))

    def limit_memory(self, limit: str | int) -> "Stream":
        """Return the stream under a hard cap on the bytes it holds.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> data = ab.from_arrays(np.zeros((64, 1_000))).batch(32).limit_memory("8MiB")
        >>> sum(len(batch) for batch in data)
        64
        >>> next(iter(data.map(lambda batch: batch).limit_memory("1KiB")))
        Traceback (most recent call last):
        ...
        anybatch.errors.DoesNotFit: `batch(32)` needs 500 KiB and may use 586 B, its share of 1 KiB; ...
        """
        return Stream(LimitMemory(self._stage, parse_size(limit)))

    def to_tf(self, *, element_spec: Any = None) -> Any:
        """Return a `tf.data.Dataset` of the same elements, without copies; each iteration is the next epoch.

        Shapes come from the features, or from the first elements where functions decide; `element_spec` says
        them instead, for functions whose results differ more than the first elements show.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> dataset = ab.from_arrays({"x": np.arange(4)}).batch(2).to_tf()
        >>> [batch["x"].numpy().tolist() for batch in dataset]
        [[0, 1], [2, 3]]
        """
        from anybatch.stream.interop.tensorflow import dataset

        def begin(epoch: int) -> Run:
            run = Run(epoch=epoch)
            self._runs[:] = [run]
            return run

        return dataset(self._stage, begin, element_spec)

    def as_supervised(self, x: Any, y: Any = None, sample_weight: Any = None) -> "Stream":
        """Return tuples for Keras by names, lists or mappings of names; ragged columns padded.

        >>> import numpy as np
        >>> import anybatch as ab
        >>> rows = ab.from_arrays({"a": np.zeros(4), "b": np.ones(4), "label": np.arange(4)}).batch(2)
        >>> x, y = next(iter(rows.as_supervised("a", "label")))
        >>> x.tolist(), y.tolist()
        ([0.0, 0.0], [0, 1])
        >>> x, y = next(iter(rows.as_supervised({"left": "a", "right": "b"}, "label")))
        >>> sorted(x)
        ['left', 'right']
        """
        if x is None:
            raise ValueError("as_supervised needs the name of x; y and sample_weight may be left out")
        for names in (x, y, sample_weight):
            check_names(names)
        return Stream(Supervised(self._stage, x, y, sample_weight))


def identity_of(stream: Stream) -> str:
    """Return what a stream reads and does, for people and for comparison: equal for equal data and code.

    Files count by size and samples of their content, not by name; functions by their code.
    """
    return identity_of_stage(stream._stage)  # noqa: SLF001


def _written(stage: Stage) -> str:
    if isinstance(stage, Operation):
        return f"{_written(stage.parent)} → {stage.described()}"
    if isinstance(stage, Several):
        return f"{stage.described()} [{' | '.join(map(_written, stage.parents))}]"
    return stage.described()
