"""A cluster on which nobody works is given up in stated time, with what to do."""

import logging
import os
from contextlib import closing

import pytest
import ray

from anybatch.scale import Task
from anybatch.scale.ray_engine import RayEngine, connected
from anybatch.scale.refusals import NobodyWorks
from anybatch.scale.workers_ray import NoPlace, RayPlaces, _RayWorker


@pytest.fixture(scope="module")
def nobody():
    """The address of a real cluster that has no processor to offer."""
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    node = {"num_cpus": 0, "memory": 1 << 30, "object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    with connected(cluster.address):
        yield cluster.address
    cluster.shutdown()


def test_a_job_that_nobody_works_on_is_given_up(nobody):
    engine = RayEngine(patience_seconds=1)
    with pytest.raises(NobodyWorks, match="offered no processor for 1 s; what is finished is kept"):
        list(engine.run(abs, [Task(0, -1, "a number", 0, 0)]))


def test_workers_that_find_no_place_are_given_up(nobody):
    places = RayPlaces(nobody, patience_seconds=1)
    with pytest.raises(NoPlace, match="2 workers need a processor each, and in 1 s"):
        places.addresses(2)
    places.close()


class Asked:
    """An actor of which every call ends in the same way."""

    def __init__(self, answer):
        self._answer = answer

    def __getattr__(self, name):
        return self

    def remote(self, *_):
        return self

    def __call__(self):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def test_workers_whose_node_goes_while_they_are_placed_are_placed_again(nobody, monkeypatch):
    with closing(RayPlaces(nobody, patience_seconds=30)) as places:
        answers = [Asked(ray.exceptions.RayActorError()), Asked("a:1")]
        monkeypatch.setattr("anybatch.scale.workers_ray._AGAIN_SECONDS", 0.01)
        monkeypatch.setattr(places, "_place", lambda count: setattr(places, "_actors", [answers.pop(0)]))
        monkeypatch.setattr(ray, "get", lambda asked, timeout: [one() for one in asked])
        assert places.addresses(1) == ["a:1"]
        places._actors = []


def test_a_worker_that_cannot_be_started_where_it_was_placed_says_why(nobody, monkeypatch, tmp_path):
    missing = FileNotFoundError(2, "No such file or directory", str(tmp_path / "missing"))
    worker = object.__new__(_RayWorker)
    worker._ray, worker._rank = ray, 1
    worker._start = Asked(ray.exceptions.RayTaskError("start", "", missing))
    monkeypatch.setattr(ray, "get", lambda asked, timeout: asked())
    outcome = worker.poll()
    assert (outcome.code, outcome.curable) == (os.EX_OSERR, False)
    assert "it could not be started: FileNotFoundError: [Errno 2]" in outcome.sentence
