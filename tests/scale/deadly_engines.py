"""Engines in front of others that make happen what happens on clusters: stops, killed workers, lost nodes."""

import os
import signal
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

from anybatch.scale import opened_engine, repair


def node_after(seconds, ballast=b""):
    """Return on which node this was done, after so many seconds."""
    import ray

    time.sleep(seconds)
    return ray.get_runtime_context().get_node_id()


def marked(folder, seconds, work, given):
    """Do some work after so many seconds, and leave a mark each time that it is done."""
    time.sleep(seconds)
    value = work(given)
    (folder / f"{Path(str(given)).name}-{os.getpid()}").touch()
    return value


def deadly_at(moments, folder, number):
    """Leave a mark; some numbers kill their worker, each of them once."""
    first = not list(folder.glob(f"{number}-*"))
    marked(folder, 0.02, abs, number)
    if first and number in moments:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


class Counting:
    """Counts the tasks that are handed on, and the values that come back."""

    def __init__(self, engine):
        self.engine = engine
        self.asked = self.answered = 0

    def run(self, work, tasks):
        tasks = list(tasks)
        self.asked += len(tasks)
        with closing(self.engine.run(work, tasks)) as running:
            for done in running:
                self.answered += 1
                self.seen()
                yield done

    def seen(self):
        """Called after every value."""


class Stopping(Counting):
    """Stops everything after so many values, as Ctrl-C does; the last one is lost on the way."""

    def __init__(self, engine, after):
        super().__init__(engine)
        self.after = after

    def seen(self):
        if self.answered > self.after:
            raise KeyboardInterrupt


class KillingItself(Stopping):
    """The process that watches over the job is killed; every task takes a moment, and leaves marks."""

    def __init__(self, engine, after, marks):
        super().__init__(engine, after)
        self.marks = marks

    def run(self, work, tasks):
        return super().run(partial(marked, self.marks, 0.05, work), tasks)

    def seen(self):
        if self.answered > self.after:
            (self.marks / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)


class KillingWorkers(Counting):
    """Lets three tasks kill their workers when they are done."""

    def __init__(self, engine, folder):
        super().__init__(engine)
        self.folder = folder

    def run(self, work, tasks):
        return super().run(partial(_deadly, self.folder, work), tasks)

    @property
    def killed(self):
        return len(list(self.folder.glob("killed-*")))


def _deadly(folder, work, given):
    value = work(given)
    if len(list(folder.iterdir())) < 3:
        (folder / f"killed-{os.getpid()}").touch()
        # its files are there and its value is not: the worst moment
        os.kill(os.getpid(), signal.SIGKILL)
    return value


class LosingANode(Counting):
    """Kills a node after the second value, while it works."""

    def __init__(self, engine, kill):
        super().__init__(engine)
        self.kill = kill

    def run(self, work, tasks):
        return super().run(partial(_slow, work), tasks)

    def seen(self):
        if self.answered == 2:
            self.kill()


def _slow(work, given):
    time.sleep(0.2)
    return work(given)


def main():
    """Repair on a cluster, and be killed after so many shards."""
    address, marks, to, after, *files = sys.argv[1:]
    with opened_engine("ray", address) as engine:
        repair(files, to, engine=KillingItself(engine, int(after), Path(marks)))


if __name__ == "__main__":
    main()
