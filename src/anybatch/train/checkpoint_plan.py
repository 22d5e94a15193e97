"""The plan in a state: what was measured before a run was stopped is not measured again when it goes on."""

import os
from dataclasses import asdict, dataclass, replace
from typing import Any

from anybatch.handover import Json
from anybatch.memory import KEPT_FACTOR, keep_freed_blocks, make_peaks_predictable, predictable_environment
from anybatch.train.memories import device_memories
from anybatch.train.plans import Plan

_CLEARLY_MORE = 1.25
"""So much more memory than before, and it is worth finding out anew what fits."""

_NOTE = "parts are as large as before the run was stopped: nothing was probed"


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """What was found out by probing, and what it depends on besides model and data."""

    micro_batch_size: int
    predicted_peak_bytes: int
    limit_bytes: int
    steps: list[bool]
    """How steps are made: eagerly, compiled by XLA."""
    quiet: bool
    """Whether the process was started with the variables that keep memory low."""


def plan_facts(plan: Plan, model: Any) -> Json | None:
    """Return a plan for the facts of a state; None of one that nobody measured, or an accelerator decided."""
    part, peak, limit = plan.micro_batch_size, plan.predicted_peak_bytes, plan.limit_bytes
    if part is None or peak is None or limit is None or device_memories(model, None):
        return None
    return asdict(KeptPlan(part, peak, limit, _steps(model), _is_quiet()))


def kept_plan(facts: Json, model: Any, limit_bytes: int) -> KeptPlan | None:
    """Return the plan in a state if it holds under this limit; None if it has to be found out anew."""
    try:
        kept = KeptPlan(**(facts.get("plan") or {}))
    except TypeError:
        # there is none, or one of another version
        return None
    same = kept.steps == _steps(model) and (_is_quiet() or not kept.quiet)
    near = kept.limit_bytes <= limit_bytes <= kept.limit_bytes * _CLEARLY_MORE
    return replace(kept, limit_bytes=limit_bytes) if same and near else None


def taken_over(plan: Plan, kept: KeptPlan) -> Plan:
    """Return a plan in parts of a kept one with what is known of them, and let peaks be as they were then."""
    make_peaks_predictable()
    if plan.parts == 1 and kept.predicted_peak_bytes * KEPT_FACTOR <= kept.limit_bytes:
        # as it was then: memory that nobody needs is spent on speed
        keep_freed_blocks()
    return replace(
        plan,
        predicted_peak_bytes=kept.predicted_peak_bytes,
        limit_bytes=kept.limit_bytes,
        notes=(*plan.notes, _NOTE),
    )


def _steps(model: Any) -> list[bool]:
    return [bool(model.run_eagerly), bool(model.jit_compile)]


def _is_quiet() -> bool:
    return all(os.environ.get(name) == value for name, value in predictable_environment().items())
