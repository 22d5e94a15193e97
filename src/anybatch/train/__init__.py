"""Train at the batch size you want, in the memory you have."""

from anybatch.train.check import Exactness, check_exact
from anybatch.train.events import Event
from anybatch.train.fit import evaluate, fit, predict
from anybatch.train.gradients import gradients
from anybatch.train.memory_log import memory_log
from anybatch.train.plan import plan
from anybatch.train.plans import Plan

__all__ = [
    "Event",
    "Exactness",
    "Plan",
    "check_exact",
    "evaluate",
    "fit",
    "gradients",
    "memory_log",
    "plan",
    "predict",
]
