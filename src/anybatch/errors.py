"""What can go wrong, as values: a fact with numbers, then the way out."""

from collections.abc import Sequence

from anybatch.units import size

Damage = tuple[str, int, int, str]
"""File, offset, length and reason of one damaged stretch."""


class AnybatchError(Exception):
    """Whatever anybatch itself raises.

    >>> import anybatch as ab
    >>> try:
    ...     ab.read("nowhere/*.tfrecord")
    ... except ab.AnybatchError as error:
    ...     print(error)
    0 files match `nowhere/*.tfrecord`; check the path, or quote the glob if a shell expanded it
    """

    def __init__(self, *fields: object) -> None:
        # past OSError's own constructor, which would read two fields as errno and text
        Exception.__init__(self, *fields)


class CorruptRecord(AnybatchError, ValueError):
    """A stretch of a shard that does not hold what its checksums promise."""

    def __init__(self, file: str, offset: int, length: int, reason: str) -> None:
        super().__init__(file, offset, length, reason)
        self.file = file
        self.offset = offset
        self.length = length
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"`{self.file}` is damaged at byte {self.offset}, {self.length:,} bytes long: {self.reason}; "
            'read(..., on_corrupt="skip") leaves it out, `anybatch repair` writes a copy without it'
        )


class FeatureError(AnybatchError, ValueError):
    """A record does not hold what its feature asks for."""

    def __init__(self, feature: str, file: str, offset: int, problem: str) -> None:
        super().__init__(feature, file, offset, problem)
        self.feature = feature
        self.file = file
        self.offset = offset
        self.problem = problem

    def __str__(self) -> str:
        where = f"`{self.file}`, record at byte {self.offset}: " if self.file else ""
        return (
            f"{where}feature `{self.feature}` {self.problem}; `anybatch inspect` shows what the records hold"
        )


class NotRecords(AnybatchError, ValueError):
    """A file that is no TFRecord shard."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(file, why)
        self.file = file
        self.why = why

    def __str__(self) -> str:
        return (
            f"`{self.file}` holds no TFRecords: {self.why}; "
            "a narrower glob leaves it out, compression= names how it is packed"
        )


class ShardChanged(AnybatchError, OSError):
    """A shard was cut, replaced or became unreadable while it was open."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(file, problem)
        self.file = file
        self.problem = problem

    def __str__(self) -> str:
        return f"`{self.file}` changed while it was read: {self.problem}; start again once it stays as it is"


_ROUNDED_OFF = 16


class DoesNotFit(AnybatchError, MemoryError):
    """A stage needs more bytes than it may use: all of the limit, or its share of it."""

    remedy = "a smaller batch"

    def __init__(self, stage: str, needed: int, share: int, limit: int | None = None) -> None:
        super().__init__(stage, needed, share, limit)
        self.stage = stage
        self.needed = needed
        self.share = share
        self.limit = limit

    @property
    def enough(self) -> int:
        """The limit that would do, if shares stay as they are."""
        if not self.limit or self.limit == self.share:
            return self.needed
        # what is shared out is rounded down, by a byte at each of a few stages
        return -(-(self.needed + _ROUNDED_OFF) * self.limit // max(1, self.share))

    def under(self, limit: int) -> "DoesNotFit":
        """Return the same, said of the whole limit."""
        return type(self)(self.stage, self.needed, self.share, limit)

    def __str__(self) -> str:
        share = f", its share of {size(self.limit)}" if self.limit and self.limit != self.share else ""
        return (
            f"`{self.stage}` needs {size(self.needed, up=True)} and may use {size(self.share)}{share}; "
            f"{self.remedy} or a limit of {size(self.enough, up=True)} would do"
        )


class WindowDoesNotFit(DoesNotFit):
    """The window of a shuffle takes more than there is; smaller, it would give another order."""

    remedy = "a smaller window"


class UserFunctionFailed(AnybatchError, RuntimeError):
    """A function that a user passed raised; its own exception is the cause."""

    def __init__(self, stage: str, function: str, where: str, cause: str) -> None:
        super().__init__(stage, function, where, cause)
        self.stage = stage
        self.function = function
        self.where = where
        self.cause = cause

    def __str__(self) -> str:
        return f"`{self.stage}` called {self.function} on {self.where}: {self.cause}"


class NoFiles(AnybatchError, FileNotFoundError):
    """A path or glob that matches nothing, or a list that names nothing."""

    NONE_NAMED = "an empty list"

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        self.pattern = pattern

    def __str__(self) -> str:
        if self.pattern == self.NONE_NAMED:
            return "the list of files is empty; check the folder or the glob that it was made of"
        found = f"0 files match `{self.pattern}`"
        if "://" in self.pattern:
            return f"{found}: files are read from disks alone; copy them here, or mount them as a folder"
        if self.pattern.startswith("~"):
            return f"{found}; only shells know `~`, Path(…).expanduser() makes a path of it"
        return f"{found}; check the path, or quote the glob if a shell expanded it"


class NothingToRead(AnybatchError, ValueError):
    """Files that are there and hold no record at all."""

    def __init__(self, files: Sequence[str]) -> None:
        super().__init__(tuple(files))
        self.files = tuple(files)

    def __str__(self) -> str:
        if len(self.files) == 1:
            return f"`{self.files[0]}` holds 0 records; check that its writer was closed, or name other files"
        first = f", `{self.files[0]}` first," if self.files else ""
        return (
            f"{len(self.files):,} files{first} hold 0 records; "
            "check that their writer was closed, or name other files"
        )


class TooManyCorrupt(AnybatchError, ValueError):
    """More damaged records than `max_corrupt` allows; `allowed` is a count, or a fraction below 1."""

    def __init__(self, found: int, allowed: float, first: Damage) -> None:
        super().__init__(found, allowed, first)
        self.found = found
        self.allowed = allowed
        self.first = first

    def __str__(self) -> str:
        file, offset, _, reason = self.first
        allowed = f"{self.allowed:.3%} of them" if 0 < self.allowed < 1 else f"{self.allowed:,.0f}"
        return (
            f"{self.found:,} damaged records and max_corrupt allows {allowed}, "
            f"the first at byte {offset} of `{file}`: {reason}; "
            "a larger max_corrupt goes on, `anybatch repair` writes clean copies"
        )


class ShardsDisagree(AnybatchError, ValueError):
    """Two shards hold different things under one name."""

    def __init__(self, feature: str, file_a: str, what_a: str, file_b: str, what_b: str) -> None:
        super().__init__(feature, file_a, what_a, file_b, what_b)
        self.feature = feature
        self.file_a = file_a
        self.what_a = what_a
        self.file_b = file_b
        self.what_b = what_b

    def __str__(self) -> str:
        return (
            f"feature `{self.feature}` is {self.what_a} in `{self.file_a}` "
            f"and {self.what_b} in `{self.file_b}`; pass features= to say which is meant"
        )


class WillNotOverwrite(AnybatchError, FileExistsError):
    """A file that is already there."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.file = file

    def __str__(self) -> str:
        return f"`{self.file}` exists; overwrite=True replaces it"


class BadFeature(AnybatchError, ValueError):
    """A feature that no record could satisfy, named by its column or, before it has one, its kind.

    `where` is the record it stands in, if it stands in one.
    """

    def __init__(self, feature: str, problem: str, where: str = "") -> None:
        super().__init__(feature, problem, where)
        self.feature = feature
        self.problem = problem
        self.where = where

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        return f"{where}feature `{self.feature}`: {self.problem}"


class FolderInTheWay(AnybatchError, IsADirectoryError):
    """A folder where a file is to be written."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return (
            f"`{self.path}` is a folder; name a file in it, such as `{self.path.rstrip('/')}/data.tfrecord`"
        )


class IsAFolder(AnybatchError, IsADirectoryError):
    """A folder where files were asked for."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"`{self.path}` is a folder; `{self.path.rstrip('/')}/*` names the files in it"


class NotExamples(AnybatchError, ValueError):
    """Records that are sound but hold no `tf.train.Example`."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(file, problem)
        self.file = file
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"`{self.file}` holds no tf.train.Example: {self.problem}; features=bytes reads them as they are"
        )


class AnybatchWarning(UserWarning):
    """Something that a user may want to know, and that stops nothing.

    >>> import warnings
    >>> import anybatch as ab
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ab.AnybatchWarning)  # for whoever wants to be stopped by it
    """
