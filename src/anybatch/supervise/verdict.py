"""Why a child ended: one cause, one plain sentence with its evidence."""

import errno
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from anybatch.handover import LastWords
from anybatch.units import size


class Cause(StrEnum):
    """What ended an attempt."""

    FINISHED = "finished"
    KILLED_FOR_MEMORY = "killed for memory"
    CRASHED_FOR_MEMORY = "crashed for memory"
    MEMORY_ERROR = "memory error"
    OVER_LIMIT = "over the limit"
    DOES_NOT_FIT = "does not fit"
    KILLED = "killed by somebody"
    TOLD_TO_END = "told to end"
    HANG = "hang"
    DISK_FULL = "disk full"
    USED_UP = "used up its allotment"
    CRASH = "crash"
    CRASH_IN_COMPANY = "crash of one of several workers"
    BUG = "bug in the script"
    EXIT_CODE = "ended itself"


OF_MEMORY = frozenset(
    {Cause.KILLED_FOR_MEMORY, Cause.CRASHED_FOR_MEMORY, Cause.MEMORY_ERROR, Cause.OVER_LIMIT}
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that was seen of one attempt. None: it could not be known."""

    exit_code: int | None = None
    signal: int | None = None
    limit_bytes: int = 0
    peak_bytes: int = 0
    address_fraction: float = 0.0
    """How much of its address space it used at most, where `ulimit -v` bounds that."""
    own_kills: int | None = None
    """Processes that the kernel killed for memory in the child's own group."""
    around_kills: int | None = None
    """The same, while the child ran, in the group that it shares with its supervisor."""
    shared_kills: int | None = None
    """The same on the whole machine, while the child ran: it may have been somebody else."""
    last_words: LastWords | None = None
    told_to_end: int | None = None
    """A signal that somebody sent to the supervisor, and that was passed on."""
    ended_over_limit: bool = False
    ended_for_silence_seconds: float | None = None

    @property
    def fullness(self) -> float:
        """How near it came to its limit, from 0 to 1 and beyond."""
        of_limit = self.peak_bytes / self.limit_bytes if self.limit_bytes else 0.0
        return max(of_limit, self.address_fraction)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A cause, and the sentence for people."""

    cause: Cause
    sentence: str


NEARLY_FULL = 0.85
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_SPACE_PHRASES = ("no space left on device", "disk quota exceeded")
_FILE_PHRASES = ("too many open files",)
_MEMORY_SIGNALS = {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP}
_POLITE_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
_ALLOTMENTS: dict[int, str] = {signal.SIGXCPU: "processor time", signal.SIGXFSZ: "file size"}
_CUT_SHORT = "anybatch.train.refusals.UpdateCutShort"
"""The one refusal of ours that a fresh process cures."""
_MEMORY_KINDS = {
    "ResourceExhaustedError",
    "OutOfMemoryError",
    "XlaRuntimeError",
    "InternalError",
    "UnknownError",
}
_MEMORY_PHRASES = (
    "oom when allocating",
    "out of memory",
    "failed to allocate",
    "dst tensor is not initialized",
    "cuda_error_out_of_memory",
    "cublas_status_alloc_failed",
    "resource_exhausted",
    "bad_alloc",
)


def judged(evidence: Evidence) -> Verdict:
    """Return the verdict: the first rule that finds its evidence."""
    for rule in _RULES:
        verdict = rule(evidence)
        if verdict is not None:
            return verdict
    return Verdict(Cause.EXIT_CODE, f"the script ended with exit code {evidence.exit_code}")


def _finished(seen: Evidence) -> Verdict | None:
    return Verdict(Cause.FINISHED, "the script finished") if seen.exit_code == 0 else None


def _told_to_end(seen: Evidence) -> Verdict | None:
    if seen.told_to_end is None:
        return None
    return Verdict(Cause.TOLD_TO_END, f"it was told to end ({_signal_name(seen.told_to_end)})")


def _ended_by_supervisor(seen: Evidence) -> Verdict | None:
    if seen.ended_over_limit:
        text = f"it held {size(seen.peak_bytes)} of the {size(seen.limit_bytes)} it may use, and was ended"
        return Verdict(Cause.OVER_LIMIT, text)
    if seen.ended_for_silence_seconds is not None:
        text = f"no sign of life for {seen.ended_for_silence_seconds:,.0f} s of training; it was ended"
        return Verdict(Cause.HANG, text)
    return None


def _killed_in_its_group(seen: Evidence) -> Verdict | None:
    if not seen.own_kills:
        return None
    if seen.signal == signal.SIGKILL:
        text = f"the kernel killed it for memory at {_held(seen)} (its group's oom_kill counter rose)"
    else:
        killed = f"the kernel killed {seen.own_kills} of its processes for memory at {_held(seen)}"
        text = f"{killed}, then it {_ending(seen)}"
    return Verdict(Cause.KILLED_FOR_MEMORY, text)


def _killed(seen: Evidence) -> Verdict | None:
    if seen.signal != signal.SIGKILL:
        return None
    if seen.own_kills is None and seen.around_kills:
        text = f"the kernel killed it for memory at {_held(seen)} (the oom_kill counter around it rose)"
        return Verdict(Cause.KILLED_FOR_MEMORY, text)
    if seen.own_kills is None and seen.shared_kills and seen.fullness >= NEARLY_FULL / 2:
        text = (
            f"the kernel probably killed it for memory at {_held(seen)} (the machine's oom_kill counter rose)"
        )
        return Verdict(Cause.KILLED_FOR_MEMORY, text)
    if seen.own_kills is None and seen.fullness >= NEARLY_FULL:
        text = f"it was killed (signal 9), probably for memory: it held {_held(seen)}"
        return Verdict(Cause.KILLED_FOR_MEMORY, text)
    counted = "the kernel counted no kill for memory" if seen.own_kills == 0 else f"it held {_held(seen)}"
    return Verdict(Cause.KILLED, f"somebody killed it (signal 9): {counted}")


def _last_words(seen: Evidence) -> Verdict | None:
    words = seen.last_words
    if words is None or seen.exit_code is None:
        return None
    said = f"{words.kind}: {_first_line(words.text)}" if words.text else words.kind
    if words.errno in _NO_SPACE or _says(words, _NO_SPACE_PHRASES):
        return Verdict(Cause.DISK_FULL, f"the disk is full ({said})")
    refused = "builtins.MemoryError" in words.kinds and words.kinds[0].startswith("anybatch.")
    if refused and words.kinds[0] != _CUT_SHORT:
        return Verdict(Cause.DOES_NOT_FIT, said)
    # TensorFlow calls it "resource exhausted", too
    if _is_of_memory(words) and not _says(words, _FILE_PHRASES):
        return Verdict(Cause.MEMORY_ERROR, f"memory ran out at {_held(seen)} ({said})")
    if "builtins.KeyboardInterrupt" in words.kinds:
        return Verdict(Cause.TOLD_TO_END, "it was interrupted")
    return Verdict(Cause.BUG, f"the script raised {said}" + (f" ({words.where})" if words.where else ""))


def _ended_by_signal(seen: Evidence) -> Verdict | None:
    if seen.signal is None:
        return None
    name = _signal_name(seen.signal)
    if seen.signal in _POLITE_SIGNALS:
        return Verdict(Cause.TOLD_TO_END, f"somebody told the script to end ({name})")
    if seen.signal in _ALLOTMENTS:
        return Verdict(Cause.USED_UP, f"it used up the {_ALLOTMENTS[seen.signal]} it was allowed ({name})")
    if seen.signal in _MEMORY_SIGNALS and seen.fullness >= NEARLY_FULL:
        used = f"{seen.fullness:.0%} of the limit was in use"
        text = f"it crashed ({name}), probably because memory ran out: {used}"
        return Verdict(Cause.CRASHED_FOR_MEMORY, text)
    return Verdict(Cause.CRASH, f"it crashed ({name}) at {_held(seen)}: not for want of memory")


_RULES: tuple[Callable[[Evidence], Verdict | None], ...] = (
    _finished,
    _told_to_end,
    _ended_by_supervisor,
    _killed_in_its_group,
    _killed,
    _last_words,
    _ended_by_signal,
)


def _is_of_memory(words: LastWords) -> bool:
    if "builtins.MemoryError" in words.kinds:
        return True
    if words.kind in {"ResourceExhaustedError", "OutOfMemoryError"}:
        return True
    return words.kind in _MEMORY_KINDS and _says(words, _MEMORY_PHRASES)


def _says(words: LastWords, phrases: Iterable[str]) -> bool:
    text = words.text.lower()
    return any(phrase in text for phrase in phrases)


def _held(seen: Evidence) -> str:
    return f"{size(seen.peak_bytes)} of {size(seen.limit_bytes)}"


def _ending(seen: Evidence) -> str:
    if seen.signal is not None:
        return f"ended by {_signal_name(seen.signal)}"
    return f"ended with exit code {seen.exit_code}"


def _signal_name(number: int) -> str:
    try:
        return f"signal {number}, {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"


def _first_line(text: str) -> str:
    first = text.strip().splitlines()[0] if text.strip() else ""
    return first if len(first) <= 200 else first[:199] + "…"
