"""Workers on a Ray cluster of two nodes, one of which is taken away."""

import logging
import subprocess
import sys

import pytest

from tests.scale.launched import alone, largest_difference, results, script_in, updated

pytestmark = pytest.mark.soak

EXACT = 1e-9


@pytest.fixture
def cluster():
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    node = {"num_cpus": 2, "memory": 4 << 30, "object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    cluster.other = cluster.add_node(**node)
    yield cluster
    cluster.shutdown()


def test_a_training_whose_ray_node_dies_goes_on_elsewhere(cluster, tmp_path):
    training = ["--kinds", "table", "--epochs", "4"]
    assert alone(tmp_path, tmp_path / "one.npz", *training).code == 0
    command = ["-m", "anybatch", "launch", "--workers", "2", "--engine", "ray", "--address", cluster.address]
    arguments = [script_in(tmp_path), tmp_path / "ray.npz", *training, "--slow", "0.5"]
    driver = subprocess.Popen(
        [sys.executable, *command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    updated(driver, 3)
    cluster.remove_node(cluster.other)
    out, err = driver.communicate(timeout=400)
    assert driver.returncode == 0, (out, err)
    assert "its place on the Ray cluster is gone" in err
    assert largest_difference(results(tmp_path / "ray.npz"), results(tmp_path / "one.npz")) < EXACT
