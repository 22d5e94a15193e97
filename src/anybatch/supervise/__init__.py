"""A small parent that runs a training script, finds out why it died, and restarts what a restart can cure."""

from anybatch.supervise.folder import AlreadyRuns
from anybatch.supervise.run import DEFAULT_RETRIES, Settings, supervise
from anybatch.supervise.tell import Events, Lines

__all__ = ["DEFAULT_RETRIES", "AlreadyRuns", "Events", "Lines", "Settings", "supervise"]
