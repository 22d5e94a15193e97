"""What an engine cannot do, as facts with the way out."""

from anybatch.errors import AnybatchError
from anybatch.units import size


class NoRay(AnybatchError, ImportError):
    """Ray is asked for and not installed."""

    def __str__(self) -> str:
        return "the engine `ray` needs Ray, which is not installed: pip install anybatch[ray]"


class NoCluster(AnybatchError, ConnectionError):
    """Nobody answers at the address of a cluster."""

    def __init__(self, address: str | None, why: str) -> None:
        super().__init__(address, why)
        self.address = address
        self.why = why

    def __str__(self) -> str:
        where = f"at `{self.address}`" if self.address else "on this machine"
        return f"no Ray cluster answers {where}: {self.why}; `ray status` shows whether one runs"


class JobUnderWay(AnybatchError, BlockingIOError):
    """Somebody else does the same job at this moment."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.folder = folder

    def __str__(self) -> str:
        return f"another process works on the same job in `{self.folder}`; wait for it, or end it first"


class TaskLost(AnybatchError, RuntimeError):
    """Every worker that tried one task died over it."""

    def __init__(self, what: str, tries: int, why: str) -> None:
        super().__init__(what, tries, why)
        self.what = what
        self.tries = tries
        self.why = why

    def __str__(self) -> str:
        return (
            f"{self.tries:,} workers died while they worked on {self.what}: {self.why}; what is finished "
            "is kept, and the same command continues once the cause is gone"
        )


class NoNodeFits(AnybatchError, MemoryError):
    """A task needs more memory than the largest node of a cluster has."""

    def __init__(self, what: str, needed_bytes: int, largest_bytes: int) -> None:
        super().__init__(what, needed_bytes, largest_bytes)
        self.what = what
        self.needed_bytes = needed_bytes
        self.largest_bytes = largest_bytes

    def __str__(self) -> str:
        return (
            f"{self.what} needs up to {size(self.needed_bytes, up=True)} and the largest node offers "
            f"{size(self.largest_bytes)}; a node started with a larger --memory would do, or smaller shards"
        )


class NobodyWorks(AnybatchError, TimeoutError):
    """A cluster has had no processor to offer for too long."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return (
            f"the cluster has offered no processor for {self.seconds:.0f} s; what is finished is kept, and "
            "the same command continues once it has one"
        )
