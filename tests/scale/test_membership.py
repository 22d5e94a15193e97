"""Who belongs to the workers, who cannot be one of them, and who would train something else."""

import json
from types import SimpleNamespace

import pytest
import tensorflow as tf
from typer.testing import CliRunner

from anybatch.cli import app
from anybatch.train.backends import tensorflow_workers
from anybatch.train.together import SharedKeeper
from anybatch.train.workers import BadCluster, CannotListen, Membership, OtherThanFirst, PeerLost, membership


def config(kind, index):
    return json.dumps({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": kind, "index": index}})


def test_a_worker_that_the_cluster_does_not_name_is_refused():
    with pytest.raises(BadCluster, match="TF_CONFIG is"):
        membership(config("worker", 2))
    assert membership(config("evaluator", 0)) is None


def test_ray_places_nobody_whom_a_cluster_has_placed(tmp_path, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config("worker", 1))
    (tmp_path / "train.py").write_text("")
    told = CliRunner().invoke(app, ["launch", "--engine", "ray", str(tmp_path / "train.py")])
    assert told.exit_code == 2
    assert "TF_CONFIG has placed this worker already" in told.stderr


def test_an_address_that_somebody_has_taken_meanwhile_is_tried_again(monkeypatch):
    def taken(**_):
        raise tf.errors.UnknownError(None, None, "Could not start gRPC server")

    here = SimpleNamespace(configure_coordination_service=lambda service_type: None)
    monkeypatch.setattr(tensorflow_workers, "context", SimpleNamespace(context=lambda: here))
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", taken)
    with pytest.raises(CannotListen, match="worker 1 cannot listen at b:1") as told:
        tensorflow_workers._strategy(Membership(("a:1", "b:1"), 1))
    # what a launcher takes for a worker that lost the others, and starts again
    assert isinstance(told.value, PeerLost)


def test_a_worker_that_is_told_to_stop_while_it_waits_for_others_blames_nobody(monkeypatch):
    def aborted(_):
        raise tf.errors.UnavailableError(None, None, "aborted")

    workers = object.__new__(tensorflow_workers.CollectiveWorkers)
    workers.rank, workers.size = 0, 2
    monkeypatch.setattr(workers, "_traced", lambda *_: aborted, raising=False)
    monkeypatch.setattr(tensorflow_workers, "told_to_stop", lambda: True)
    with pytest.raises(PeerLost, match="the launcher has ended this attempt"):
        workers.wait_for_all(1.0)


@pytest.mark.parametrize("what", ["model", "batch size", "data", None])
def test_a_worker_that_would_train_something_else_is_refused(what):
    own = {"model": "3 weights in 2 variables (aa) of", "batch size": "8", "data": "9 records"}
    first = {**own, "model": "3 weights in 2 variables"} | ({} if what is None else {what: "another"})
    keeper = object.__new__(SharedKeeper)
    keeper._identity = lambda: dict(own)
    keeper._workers = SimpleNamespace(rank=1, of_first=lambda _: [json.dumps(first).encode()])
    if what is None:
        keeper._check_alike()
        return
    with pytest.raises(OtherThanFirst, match=f"the {what} of worker 1 is another one .* instead of another"):
        keeper._check_alike()
