"""Train at the batch size you want, in the memory you have."""

from anybatch.train.fit import evaluate, fit, predict
from anybatch.train.plans import Plan

__all__ = ["Plan", "evaluate", "fit", "predict"]
