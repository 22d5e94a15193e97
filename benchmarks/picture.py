"""Draw the README's picture: `python -m benchmarks.picture`; with `--kept`, of what was seen the last time.

Memory over time of the two scripts of `anybatch demo`, both in a memory group of the same size.
"""

import json
import os
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

from anybatch.cli.demo import MEMORY
from anybatch.cli.demo.data import damage, write_sorted_digits
from benchmarks.machine import fingerprint
from benchmarks.plot import INK, for_light_and_dark

HERE = Path(__file__).resolve().parent
RESULTS, PICTURE = HERE / "results" / "memory.jsonl", HERE.parent / "docs" / "images" / "memory.svg"
SCRIPTS = {"plain Keras": "with_keras.py", "anybatch": "with_anybatch.py"}
COLOURS = {"plain Keras": "#4a90d9", "anybatch": "#e07b00"}
MIB = 1 << 20
Event = dict[str, Any]


def main() -> int:
    """Run both scripts, keep what was seen, and draw it."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        seen = {name: events_of(Path(folder), script) for name, script in SCRIPTS.items()}
    RESULTS.parent.mkdir(exist_ok=True)
    lines = [{"kind": "machine", **fingerprint()}]
    lines += [{"script": name, **event} for name, events in seen.items() for event in events]
    RESULTS.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    draw(seen)
    print(f"written: {RESULTS.name}, {PICTURE.name}", file=sys.stderr)
    return 0


def prepare(folder: Path) -> None:
    """Write the demo's data and scripts."""
    (folder / "train").mkdir()
    write_sorted_digits(folder / "train")
    damage(min((folder / "train").glob("*.tfrecord")))
    for script in SCRIPTS.values():
        (folder / script).write_text(files("anybatch.cli.demo").joinpath(f"{script}.txt").read_text())


def events_of(folder: Path, script: str) -> list[Event]:
    """Run a script in its memory group; return what was seen of it."""
    run = subprocess.run(
        [sys.executable, "-m", "anybatch", "run", "--json", "--memory", MEMORY, script],
        cwd=folder,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def kept() -> dict[str, list[Event]]:
    """Return what was seen of each script the last time."""
    lines = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    return {name: [line for line in lines if line.get("script") == name] for name in SCRIPTS}


def draw(seen: dict[str, list[Event]]) -> None:
    """Draw one line per script, the limit, and how each ended."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "memory", "text.color": INK}):
        figure, panel = plt.subplots(figsize=(9, 3.6), layout="constrained")
        for name, events in seen.items():
            draw_line(panel, name, events)
        limit = next(event["limit_bytes"] for event in seen["anybatch"] if event["event"] == "began") / MIB
        panel.axhline(limit, color="#c03030", linewidth=1, linestyle="--")
        at_right_end: Any = {"transform": panel.get_yaxis_transform(), "ha": "right"}
        panel.text(0.99, limit * 1.02, f"limit {limit:.0f} MiB", color="#c03030", fontsize=9, **at_right_end)
        panel.set_ylim(0, limit * 1.25)
        panel.margins(x=0.12)
        panel.set_xlabel("seconds", color=INK)
        panel.set_ylabel("MiB", color=INK)
        grouped = all(event.get("own_group", True) for events in seen.values() for event in events)
        limited = "the same memory group" if grouped else "the same limit, by watching: no memory group here"
        panel.set_title(f"the same model, batch 512, {limited}", loc="left", fontsize=10, color=INK)
        panel.tick_params(colors=INK)
        for side, spine in panel.spines.items():
            spine.set_visible(side in {"left", "bottom"})
            spine.set_color(INK)
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(PICTURE, transparent=True, metadata={"Date": None})
        plt.close(figure)
    PICTURE.write_text(for_light_and_dark(PICTURE.read_text()))


def draw_line(panel: Any, name: str, events: list[Event]) -> None:
    """Draw one script's memory, with its end."""
    samples = [event for event in events if event["event"] == "sample"]
    seconds = [event["time"] - events[0]["time"] for event in samples]
    held = [event["held_bytes"] / MIB for event in samples]
    verdict = next(event for event in events if event["event"] == "ended")
    killed = verdict["cause"] != "finished"
    if killed:
        # what was seen last was already being taken away; the group's own mark tells how far it got
        held[-1] = next(event["peak_bytes"] for event in events if event["event"] == "over") / MIB
    panel.plot(seconds, held, color=COLOURS[name], linewidth=2)
    panel.plot(seconds[-1], held[-1], marker="X" if killed else "o", markersize=9, color=COLOURS[name])
    text = f"{name}: {verdict['cause']}"
    panel.annotate(text, (seconds[-1], held[-1]), (8, -16), textcoords="offset points", color=COLOURS[name])


if __name__ == "__main__":
    sys.exit(draw(kept()) if "--kept" in sys.argv[1:] else main())
