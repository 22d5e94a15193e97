"""The same records in other peers' formats, made once beside the TFRecord shards and not timed."""

import subprocess
from pathlib import Path

from benchmarks.datasets import Written
from benchmarks.environment import NotMade, last_line

FORMS = {"arrayrecord": ".array_record", "tar": ".tar"}


def shards_in(form: str, dataset: str, written: Written, python: str) -> tuple[str, ...]:
    """Return the shards in that format, TFRecord if it has no name; they are made if they are not there."""
    if not form:
        return written.shards
    folder = folder_of(form, written)
    if not folder.exists():
        # by the contender's own environment: only that has the writer
        command = [python, "-m", "benchmarks.convert", form, dataset, str(written.folder)]
        done = subprocess.run(
            command, cwd=Path(__file__).parent.parent, stderr=subprocess.PIPE, text=True, check=False
        )
        if done.returncode:
            raise NotMade(f"its data could not be made: {last_line(done.stderr)}")
    return tuple(str(path) for path in sorted(folder.iterdir()))


def folder_of(form: str, written: Written) -> Path:
    """Return the folder of a format, beside that of the TFRecord shards."""
    return written.folder.with_name(f"{written.folder.name}.{form}")
