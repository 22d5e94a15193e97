"""What happens around every update of `fit` besides training: signs of life, and the state on disk."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from anybatch.errors import AnybatchWarning
from anybatch.handover import Heartbeat, Json, Orders, Pulse, received_orders
from anybatch.memory import held
from anybatch.train.backends import backend_of
from anybatch.train.checkpoint import ChangedSince, Checkpoint
from anybatch.train.checkpoint_callbacks import Memories
from anybatch.train.checkpoint_files import State
from anybatch.train.checkpoint_folders import folder_of_this_fit, opened
from anybatch.train.checkpoint_layout import check_optimizer, layouts_of, metrics_in
from anybatch.train.checkpoint_model import Snapshot, model_identity, restore_model
from anybatch.train.checkpoint_passes import Arrays
from anybatch.train.checkpoint_places import ContinuedEpochs, Placed, placed
from anybatch.train.checkpoint_plan import KeptPlan, kept_plan, plan_facts, taken_over
from anybatch.train.checkpoint_random import random_state, restore_random
from anybatch.train.epochs import Epochs
from anybatch.train.inputs import Source
from anybatch.train.plans import Plan
from anybatch.train.session import Session

_RETURNED = "returned/"
"""What arrays are called that were changed when training was over."""


class Keeper:
    """The state of one `fit`: where it comes from, and where it is written to."""

    def __init__(self, model: Any, source: Source, folder: Any, *, resume: bool, epochs: int) -> None:
        orders = received_orders()
        folder = folder_of_this_fit(folder, orders)
        self.model = model
        self.epochs_wanted = epochs
        self.counts_steps = False
        """Whether a pass over the data goes on from epoch to epoch."""
        self._training: Epochs | None = None
        self._epoch_length: int | None = None
        self.source: Source | Placed = source
        self._orders = orders or Orders()
        self._checkpoint: Checkpoint | None = None
        self._folder = Path()
        self.state: State | None = None
        self._metrics: dict[str, str | None] = {}
        """Which arrays of the state are today's metrics."""
        self.plan_facts: Json | None = None
        """The plan as states keep it."""
        self._kept_plan: KeptPlan | None = None
        """What the plan of the state says, if this run begins with it."""
        if folder is not None:
            self.source = known = placed(source)
            self._build(known)
            self.state = self._found(folder, resume)
            if self.state is not None:
                check_optimizer(self.state, model, folder)
                self._metrics = metrics_in(self.state, model, folder)
            self._prepare(folder)

    def _found(self, folder: Path, resume: bool) -> State | None:
        """Take the folder, and return the state in it."""
        self._checkpoint = opened(folder, self._identity(), resume, self._orders)
        return self._checkpoint.latest()

    def _build(self, source: Placed) -> None:
        """Create every variable, those of metrics and optimizer too: there has to be something to restore."""
        part = source.first_part()
        if part is not None:
            backend_of(self.model).build(self.model, part, source.batch_size)

    def _identity(self) -> dict[str, str]:
        source: Any = self.source
        return {
            "model": model_identity(self.model),
            "batch size": str(source.batch_size),
            "data": source.described(),
        }

    def restore(self) -> None:
        """Give the model what is in the state; that of a finished run as it was returned."""
        if self.state is not None:
            restore_model(self.model, self.state.arrays, {**self._returned, **self._metrics})

    @property
    def _returned(self) -> dict[str, str | None]:
        """Under which names what was changed when training was over lies in the state of a finished run."""
        names = [] if self.state is None or not self.finished else self.state.arrays
        return {name.removeprefix(_RETURNED): name for name in names if name.startswith(_RETURNED)}

    @property
    def finished(self) -> bool:
        """Whether the state that was found is that of a run which has nothing left to do."""
        facts = None if self.state is None else self.state.facts
        return facts is not None and bool(facts["stopped"] or facts["epoch"] >= self.epochs_wanted)

    def _prepare(self, folder: Path) -> None:
        source: Any = self.source
        self._folder = folder
        if not source.exact(folder):
            text = "this data cannot say where it stands; a continued run reads it again up to the batch"
            warnings.warn(
                f"{text}, which is exact if it comes in the same order", AnybatchWarning, stacklevel=4
            )
        if self.state is not None and self.state.facts["place"] is not None:
            self._go_on(source, self.state, folder)

    def _go_on(self, source: Placed, state: State, folder: Path) -> None:
        try:
            source.go_on_from(state.facts["place"], state.arrays, folder)
        except ValueError as problem:
            now = f"one that cannot go on from there ({str(problem).partition(chr(10))[0]})"
            raise ChangedSince(str(folder), "data", "a pipeline whose place was kept", now) from None

    def begin_state(self) -> None:
        """A state begins to be put together: what that takes counts in how often it is done."""
        if self._checkpoint is not None:
            self._checkpoint.cadence.began()

    def kept_place(self) -> tuple[Json, Arrays]:
        """Return where the data stands, as JSON and as arrays by name."""
        source: Any = self.source
        return source.place(), source.kept(self._folder)

    def complain(self, problem: OSError) -> None:
        """Say that there is no state of this moment."""
        if self._checkpoint is not None:
            self._checkpoint.could_not_write(problem)

    @property
    def batches_done(self) -> int:
        """How many batches of the first epoch were made before."""
        return 0 if self.state is None else int(self.state.facts["batch"])

    def epochs(self, steps: int | None) -> Epochs:
        """Return what is left of the epochs."""
        self.counts_steps = bool(steps)
        self._epoch_length = steps or self.source.num_batches
        self._training = ContinuedEpochs(self.source, steps, self.batches_done)
        return self._training

    def is_last(self, batches: int) -> bool:
        """Return whether an epoch is known to have no more than so many batches."""
        over = self._training is not None and self._training.over
        return over or (self._epoch_length is not None and batches >= self._epoch_length)

    def part_to_begin_with(self, wanted: int | str, limit_bytes: int) -> int | str:
        """Return the part of the plan in the state where it still holds; else what the script wants.

        To be asked before `bounded`: that gives the plan what the state knows of such parts.
        """
        if wanted != "auto" or self.state is None or self.finished:
            return wanted
        self._kept_plan = kept_plan(self.state.facts, self.model, limit_bytes)
        return wanted if self._kept_plan is None else self._kept_plan.micro_batch_size

    def bounded(self, plan: Plan) -> Plan:
        """Return a plan whose parts are no larger than the supervisor allows; states keep it."""
        kept = self._kept_plan
        plan = self._within_orders(plan if kept is None else taken_over(plan, kept))
        self.plan_facts = plan_facts(plan, self.model)
        return plan

    def _within_orders(self, plan: Plan) -> Plan:
        most, batch = self._orders.largest_part, plan.batch_size
        part = min(filter(None, (plan.micro_batch_size, most)), default=None)
        if most is None or part == plan.micro_batch_size:
            return plan
        return replace(plan, micro_batch_size=part, parts=batch and part and -(-batch // part))

    def watching(self, callbacks: Any, session: Session) -> "Watching":
        """Return callbacks that keep the state besides."""
        return Watching(self, callbacks, session)

    def save(self, state: State, *, last: bool) -> None:
        """Write a state: the last one at once, others while training goes on."""
        if self._checkpoint is None:
            return
        if last:
            self._checkpoint.save_now(state)
        else:
            self._checkpoint.save_later(state)

    def close(self) -> None:
        """Wait for what is being written, and let the folder go."""
        if self._checkpoint is not None:
            self._checkpoint.close()

    def due(self) -> bool:
        """Whether it is time for another state."""
        return self._checkpoint is not None and self._checkpoint.due()

    @property
    def keeps(self) -> bool:
        """Whether anything is written at all."""
        return self._checkpoint is not None


@dataclass(slots=True)
class _Earlier:
    """The fits of this process that are over: a supervisor counts the steps of all of them."""

    steps: int = 0


_EARLIER = _Earlier()


class Watching:
    """A list of callbacks, and behind each of its calls the keeper's own work."""

    def __init__(self, keeper: Keeper, callbacks: Any, session: Session) -> None:
        self._keeper = keeper
        self._callbacks = callbacks
        self._session = session
        self._model = keeper.model
        self._heart = Heartbeat.of_this_process()
        session.transaction.alive = self._beat
        session.transaction.begins = self._begin
        self._rows = 0
        """How many the last batch has that was begun."""
        self._told_rows = 0
        self._offset = keeper.batches_done
        self._awaited = False
        """Whether silence would be taken for a hang."""
        self._epoch = 0
        self._trained: Snapshot | None = None
        """The model behind its last update, once that is made."""
        self._step = 0 if keeper.state is None else keeper.state.step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._callbacks, name)

    def on_train_begin(self, logs: Any = None) -> None:
        # a run that was interrupted has left its own there; a callback may set it now
        self._model._initial_epoch = None  # noqa: SLF001
        self._callbacks.on_train_begin(logs)
        self._memories = Memories(self._callbacks.callbacks)
        state = self._keeper.state
        if state is not None:
            self._go_on_from(state)
            stopped = state.facts["stopped"]
            self._model._initial_epoch = self._keeper.epochs_wanted if stopped else state.facts["epoch"]  # noqa: SLF001
        # the first update is traced, perhaps compiled, and nobody knows how long that takes
        self._beat(training=False, now=True)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch
        self._callbacks.on_epoch_begin(epoch, logs)
        state = self._keeper.state
        if state is not None and self._offset:
            # this epoch has begun before: metrics were reset then, and callbacks have set the learning rate
            self._go_on_from(state)

    def _go_on_from(self, state: State) -> None:
        self._keeper.restore()
        self._memories.restore(state.facts, state.arrays)
        restore_random(state.facts["random"])

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._callbacks.on_train_batch_begin(batch + self._offset, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        done = batch + self._offset + 1
        self._callbacks.on_train_batch_end(done - 1, logs)
        self._step += self._model.steps_per_execution
        self._beat(now=not self._awaited)
        # behind the last batch the epoch is not over: validation and callbacks come first
        if self._keeper.due() and not self._keeper.is_last(done):
            self._save(self._epoch, done)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._callbacks.on_test_batch_end(batch, logs)
        self._beat()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        # what callbacks do here may take any time
        self._beat(training=False, now=True)
        self._callbacks.on_epoch_end(epoch, logs)
        self._offset = 0
        self._epoch = epoch + 1
        if self._keeper.due():
            self._save(self._epoch, 0)

    def on_last_update(self) -> None:
        """All updates are made: what is done to the weights from now on is for whoever asked for them.

        An optimizer may put averages in their place and a callback the best ones; more epochs go on without.
        """
        if self._keeper.keeps:
            self._trained = Snapshot(self._model)

    def on_train_end(self, logs: Any = None) -> None:
        # callbacks and the last state of a large model may take any time
        self._beat(training=False, now=True)
        self._callbacks.on_train_end(logs)
        before = self._keeper.state
        if self._keeper.keeps and (before is None or before.step != self._step):
            self._save(self._epoch or self._keeper.epochs_wanted, 0, last=True)
        self._keeper.close()
        # Keras starts every later fit there
        self._model._initial_epoch = None  # noqa: SLF001
        _EARLIER.steps += self._step

    def _save(self, epoch: int, batch: int, *, last: bool = False) -> None:
        keeper, source = self._keeper, cast(Placed, self._keeper.source)
        # by steps a pass is open even behind the last epoch, once there was a step
        standing = batch or source.follows or (keeper.counts_steps and self._step)
        keeper.begin_state()
        try:
            place, kept = keeper.kept_place() if standing else (None, {})
        except OSError as problem:
            keeper.complain(problem)
        else:
            self._write(epoch, batch, place, kept, last=last)

    def _write(self, epoch: int, batch: int, place: Json | None, kept: Arrays, *, last: bool) -> None:
        remembered, arrays = self._memories.state()
        facts: Json = {
            "epoch": epoch,
            "batch": batch,
            "place": place,
            "stopped": bool(self._model.stop_training),
            "random": random_state(),
            "variables": layouts_of(self._model),
            "plan": self._keeper.plan_facts,
            **remembered,
        }
        every = {**self._variables(), **arrays, **kept}
        self._keeper.save(State(self._step, facts, every), last=last)

    def _variables(self) -> dict[str, Any]:
        """Return the model as training has left it and, where that was changed since, as it is now."""
        now = _read(Snapshot(self._model))
        if self._trained is None:
            return now
        trained = _read(self._trained)
        changed = [name for name in trained if not np.array_equal(trained[name], now[name])]
        return {**trained, **{f"{_RETURNED}{name}": now[name] for name in changed}}

    def _largest_part(self, batch_size: int) -> int:
        return min(filter(None, (self._session.transaction.size.now, batch_size)), default=0)

    def _begin(self, rows: int) -> None:
        """Note how large a batch is; where the data does not tell, say so before it is tried.

        Whoever is killed in it could not be given smaller parts otherwise: smaller than what?
        """
        self._rows = rows
        if self._keeper.source.batch_size is None and rows > self._told_rows:
            self._beat(training=self._awaited, now=True)

    def _beat(self, *, training: bool = True, now: bool = False) -> None:
        if not self._heart.heard or not (now or self._heart.due()):
            return
        self._awaited = training
        batch_size = self._keeper.source.batch_size or self._rows
        self._told_rows = batch_size
        pulse = Pulse(
            step=_EARLIER.steps + self._step,
            epoch=self._epoch,
            batch_size=batch_size,
            part=self._largest_part(batch_size),
            held_bytes=held().counted_bytes,
            training=training,
        )
        self._heart.beat(pulse, now=now)


def _read(snapshot: Snapshot) -> dict[str, Any]:
    return {name: snapshot[name] for name in snapshot}
