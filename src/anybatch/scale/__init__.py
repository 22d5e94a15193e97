"""Past one machine, on engines that exist: jobs over shards, a task each."""

from anybatch.scale.engine import Engine, Task, opened_engine
from anybatch.scale.jobs import FileJob, index_shards, verify
from anybatch.scale.jobs_repair import repair
from anybatch.scale.jobs_reshard import reshard
from anybatch.scale.local_engine import LocalEngine

__all__ = [
    "Engine",
    "FileJob",
    "LocalEngine",
    "Task",
    "index_shards",
    "opened_engine",
    "repair",
    "reshard",
    "verify",
]
