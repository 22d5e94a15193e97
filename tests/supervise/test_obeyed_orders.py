"""After a death for want of memory the streams of the next attempt hold less, as they were told."""

import json
import time
from itertools import count

import numpy as np
import pytest

import anybatch as ab
from anybatch.handover import FOLDER_VARIABLE, Orders, read_pulse
from anybatch.train import checkpoint_folders
from tests.supervise.supervised import MB, needs_group, supervised

ROW_BYTES, ROWS, BATCH = MB // 4, 256, 16
LIMIT = 256 * MB

DIE_ONCE = """
import json
import numpy as np
import anybatch as ab
from anybatch.memory import held

def told(stream):
    before = held().counted_bytes
    {look}
    orders_told = [orders.prefetch, orders.cache_bytes]
    print(json.dumps([held().counted_bytes - before, *orders_told]), file=sys.stderr)
    train()
    if first_time():
        raise MemoryError

"""
READ_AHEAD = """
    elements = iter(stream)
    first = next(elements)
    time.sleep(1)
"""
READ_ALL = """
    for _ in stream: pass
"""
MADE_ROWS = f"""
def rows(some):
    return {{"x": np.repeat(some["n"][:, None].astype("uint8"), {ROW_BYTES}, axis=1)}}

cached = ab.from_arrays({{"n": np.arange({ROWS})}}).map(rows, batched=True).cache().batch({BATCH})
"""
READ_ROWS = f"""
stream = ab.read(sys.argv[1], {{"x": ab.Raw("uint8", ({ROW_BYTES},))}})
told(stream.map(lambda some: some, batched=True).batch({BATCH}).prefetch(8))
"""


def two_attempts(folder, look, body, *arguments):
    """Return what each attempt of a script held and was told: the first one dies, the second finishes."""
    told = supervised(folder, DIE_ONCE.format(look=look) + body, "--memory", f"{LIMIT}", arguments=arguments)
    assert told.causes() == ["memory error", "finished"], told
    return [json.loads(line) for line in told.err.splitlines() if line.startswith("[")]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_cache_larger_than_ordered_moves_into_files(tmp_path):
    (before, *free), (after, *ordered) = two_attempts(tmp_path, READ_ALL, MADE_ROWS + "told(cached)")
    assert (free, ordered) == ([None, None], [2, LIMIT // 8])
    assert before >= ROWS * ROW_BYTES
    assert after <= LIMIT // 8
    assert list((tmp_path / "cache").rglob("*.bin"))


@needs_group
def test_a_cache_that_the_kernel_killed_for_is_finished_in_files(tmp_path):
    """Memory that the host's pipeline takes, not the model: smaller parts alone would not help."""
    body = "import numpy as np\nimport anybatch as ab\ntrain()" + MADE_ROWS + "for _ in cached: pass"
    told = supervised(tmp_path, body, "--memory", f"{ROWS * ROW_BYTES}")
    assert told.causes() == ["killed for memory", "finished"], told


def test_fewer_batches_are_made_ahead_than_the_stream_asks_for(tmp_path):
    rows = np.zeros(ROW_BYTES, "uint8").tobytes()
    ab.write(tmp_path / "rows.tfrecord", ({"x": rows} for _ in range(ROWS)))
    (before, *_), (after, *_) = two_attempts(tmp_path, READ_AHEAD, READ_ROWS, str(tmp_path / "rows.tfrecord"))
    # two lie ready instead of eight; whoever reads and maps holds no more than before
    assert before - after >= (8 - 2) * BATCH * ROW_BYTES


@pytest.mark.parametrize("prefetch", [1, 2, 5])
def test_no_stage_works_further_ahead_than_ordered(tmp_path, monkeypatch, prefetch):
    made = []

    def noted(some):
        made.append(int(some[0]))
        return some

    elements = iter(ab.from_arrays(np.arange(500)).batch(1).map(noted).prefetch(100))
    made_ahead_without = settled(elements, made)
    Orders(prefetch=prefetch).write(tmp_path)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    made.clear()
    elements = iter(ab.from_arrays(np.arange(500)).batch(1).map(noted).prefetch(100))
    # ready, one more for which there is no room yet, and those that threads work on
    assert settled(elements, made) <= prefetch + 1 + (prefetch + 1) < 100 <= made_ahead_without


def settled(elements, made):
    """Return how many are made beyond the first, once no more are."""
    next(elements)
    before = -1
    while len(made) != before:
        before = len(made)
        time.sleep(0.1)
    elements.close()
    return before - 1


def linear():
    import keras

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def test_the_steps_of_all_fits_of_a_script_are_counted(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    seen = []
    for rows in (8, 24):
        ab.fit(linear(), np.ones((rows, 3)), np.ones((rows, 1)), batch_size=4, verbose=0)
        seen.append(read_pulse(tmp_path).step)
    assert seen[1] - seen[0] == 24 // 4


def test_a_run_that_begins_anew_does_so_once_however_often_it_is_started_again(tmp_path, monkeypatch):
    data = (np.ones((8, 3)), np.ones((8, 1)))

    def trained(run, fits=1):
        """The epochs that a start of a script makes, each of whose fits begins anew."""
        Orders(run=run).write(tmp_path)
        monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
        monkeypatch.setattr(checkpoint_folders, "_ANEW", count(1))
        made = []
        for _ in range(fits):
            counted = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: made.append(epoch))
            folder = tmp_path / "state"
            ab.fit(linear(), *data, epochs=2, checkpoint=folder, resume=False, verbose=0, callbacks=[counted])
        return made

    keras = pytest.importorskip("keras")
    assert trained("one") == [0, 1]
    assert trained("one") == []
    assert trained("another") == [0, 1]
    assert trained("a third", fits=2) == [0, 1, 0, 1]


def batches_of(rows):
    while True:
        yield np.ones((rows, 3)), np.ones((rows, 1))


def test_of_data_that_does_not_tell_its_batches_it_is_said_what_they_were(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    ab.fit(linear(), batches_of(24), steps_per_epoch=2, verbose=0)
    pulse = read_pulse(tmp_path)
    assert (pulse.batch_size, pulse.part) == (24, 24)


def test_the_rows_of_a_batch_are_known_to_who_dies_in_it(tmp_path, monkeypatch):
    steps = pytest.importorskip("anybatch.train.backends.tensorflow_steps")

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(steps.Steps, "update_whole", die)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        ab.fit(linear(), batches_of(24), steps_per_epoch=2, verbose=0)
    pulse = read_pulse(tmp_path)
    assert (pulse.batch_size, pulse.part) == (24, 24)
    # it may be traced for long
    assert not pulse.training


FROM_A_GENERATOR = """
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras, numpy as np
import anybatch as ab
from anybatch.train.backends.tensorflow_steps import Steps
from anybatch.train.refusals import UpdateCutShort

def of_few_rows(step):
    def run(self, part, *more):
        if len(part[0]) > 32: raise UpdateCutShort("OOM")
        return step(self, part, *more)
    return run

Steps.update_whole, Steps.add_part = of_few_rows(Steps.update_whole), of_few_rows(Steps.add_part)
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
ab.fit(model, ((np.ones((64, 3)), np.ones((64, 1))) for _ in range(4)), verbose=0)
"""


@pytest.mark.long
def test_training_from_a_generator_gets_smaller_parts(tmp_path):
    told = supervised(tmp_path, FROM_A_GENERATOR)
    assert told.causes() == ["memory error", "finished"], told
    assert told.parts() == [None, 32]
