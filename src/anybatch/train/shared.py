"""A session of several workers: every one runs its own rows, and all make the same update."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from anybatch.train.epochs import Epochs
from anybatch.train.inputs import Part
from anybatch.train.plans import Plan
from anybatch.train.session import Session
from anybatch.train.transaction import Transaction
from anybatch.train.workers import PeerLost, Workers


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
        self._apart = False
        self._kept(sample)
        self.give_first_values()

    def give_first_values(self) -> None:
        """Let all that an update moves be as it is with worker 0."""
        self._workers.give_first_values(self._adapter.moved_by_a_step(self.model))

    def _splitting(self, part: Any, phase: str) -> Any:
        self.backend.check_splits(self.model, phase)
        made, weighted = self._kept(self._sample), self.backend.is_weighted(self._sample)
        if weighted not in made.shared:
            found = made.found[weighted] = self._adapter.shared_findings(self.model, self._sample)
            made.shared[weighted] = self._adapter.SharedSteps(self.model, found, self._workers, self._sample)
        return made.shared[weighted]

    def train(self, epochs: Epochs, epoch: int, callbacks: Any, batch_size: int | None) -> Any:
        """Train one epoch; whoever loses the others keeps the state behind the last update."""
        if not self._apart:
            self._apart = True
            self._adapter.seeds_apart(self.model, self._workers.rank)
        try:
            return super().train(epochs, epoch, callbacks, batch_size)
        except PeerLost:
            callbacks.cut_off()
            raise

    def told(self, plan: Plan) -> Plan:
        """Return the plan with what was found out about splitting this model, and who shares it."""
        together = f"{self._workers.size} workers share every batch; this is worker {self._workers.rank}"
        found = self._kept(self._sample).found.get(self.backend.is_weighted(self._sample))
        exact, notes = (True, ()) if found is None else (found.exact, found.notes)
        return replace(plan, exact=exact, notes=(*plan.notes, *notes, together))
