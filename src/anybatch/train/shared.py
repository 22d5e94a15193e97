"""A session of several workers: every one runs its own rows, and all make the same update."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from anybatch.train.epochs import Epochs
from anybatch.train.inputs import Part, Source
from anybatch.train.plans import Plan
from anybatch.train.refusals import CannotSplit
from anybatch.train.session import Session
from anybatch.train.transaction import Transaction
from anybatch.train.workers import AllStop, PeerLost, Workers


class SharedTransaction(Transaction):
    """Every batch in parts, however few: what is summed over workers is the sum of their parts."""

    def update(self, parts: Iterator[Part], batch_size: int | None) -> Any:
        """Make one update out of all workers' parts of a batch; a worker may have none."""
        steps = self._splitting(None, "part")
        steps.begin()
        rows = self._all_parts(
            parts, lambda part, n: steps.add_part(self._columns.tensors(part), n / (batch_size or 1)), "part"
        )
        logs = self._committed(lambda careful: steps.commit(rows, sizes_were_right=False, careful=careful))
        self.size.finished()
        return logs

    def test(self, parts: Iterator[Part], batch_size: int | None) -> Any:
        """Count one batch of all workers that is not trained on."""
        steps = self._splitting(None, "test")
        steps.begin()
        rows = self._all_parts(
            parts,
            lambda part, n: steps.add_test_part(self._columns.tensors(part), n / (batch_size or 1)),
            "test",
        )
        return self._committed(lambda _careful: steps.commit_test(rows))


class SharedSession(Session):
    """A model that several workers train, all of them from worker 0's weights on."""

    kind = SharedTransaction

    def __init__(self, model: Any, wanted: int | None, workers: Workers, adapter: Any, sample: Any) -> None:
        super().__init__(model, wanted)
        self._workers = workers
        self._adapter = adapter
        self._sample = sample
        self._test_sample = sample
        self._leaves = False
        """Whether this worker was told to stop behind the last update: the others hear it with the next."""
        self._apart = False
        with self._split_by_workers():
            self._kept(sample)
        self.give_first_values()

    def give_first_values(self) -> None:
        """Let all that an update moves be as it is with worker 0."""
        self._workers.give_first_values(self._adapter.moved_by_a_step(self.model))

    @contextmanager
    def _split_by_workers(self) -> Iterator[None]:
        """Say of what cannot be split that workers split every batch, however much memory there is."""
        try:
            yield
        except CannotSplit as error:
            way_out = (
                f"{self._workers.size} workers share every batch: train it in one process, without `launch`"
            )
            raise CannotSplit(error.what, error.why, way_out) from error

    def _splitting(self, part: Any, phase: str) -> Any:
        with self._split_by_workers():
            return self._shared_steps(phase)

    def _shared_steps(self, phase: str) -> Any:
        self.backend.check_splits(self.model, phase)
        # what is validated on may have weights where what is trained on has none
        sample = self._test_sample if phase == "test" else self._sample
        made, weighted = self._kept(self._sample), self.backend.is_weighted(sample)
        if weighted not in made.shared:
            found = made.found[weighted] = self._adapter.shared_findings(self.model, sample, self._workers)
            made.shared[weighted] = self._adapter.SharedSteps(self.model, found, self._workers, sample)
        return made.shared[weighted]

    def tests_on(self, source: Source) -> None:
        """Look at what is validated on: whoever has no rows of a batch of it answers in their shape."""
        sample = source.first_rows(self._adapter.SAMPLE_ROWS)
        self._test_sample = self._sample if sample is None else sample

    def _meet(self) -> None:
        if self._leaves:
            self._splitting(None, "part").leave()

    def _ends_here(self) -> bool:
        self._leaves = bool(self.model.stop_training)
        return False

    def train(self, epochs: Epochs, epoch: int, callbacks: Any, batch_size: int | None) -> Any:
        """Train one epoch; whoever loses the others keeps the state behind the last update."""
        if not self._apart:
            self._apart = True
            self._adapter.seeds_apart(self.model, self._workers.rank)
        self._leaves = False
        try:
            return super().train(epochs, epoch, callbacks, batch_size)
        except AllStop:
            self.model.stop_training = True
            return self._epoch_logs(self.backend.metrics_so_far(self.model))
        except PeerLost:
            callbacks.cut_off()
            raise

    def told(self, plan: Plan) -> Plan:
        """Return the plan with what was found out about splitting this model, and who shares it."""
        together = f"{self._workers.size} workers share every batch; this is worker {self._workers.rank}"
        found = self._kept(self._sample).found.get(self.backend.is_weighted(self._sample))
        exact, notes = (True, ()) if found is None else (found.exact, found.notes)
        return replace(plan, exact=exact, notes=(*plan.notes, *notes, together))
