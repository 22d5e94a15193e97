"""A cluster on which nobody works is given up in stated time, with what to do."""

import logging

import pytest

from anybatch.scale import Task
from anybatch.scale.ray_engine import RayEngine, connected
from anybatch.scale.refusals import NobodyWorks
from anybatch.scale.workers_ray import NoPlace, RayPlaces


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
