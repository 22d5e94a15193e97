"""Several workers make the updates of one process, whatever happens to them."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from anybatch.scale.workers_places import LocalPlaces
from anybatch.train.workers import TooLate
from tests.scale.launched import alone, largest_difference, launched, member, results

EXACT = 1e-9
UPDATES = 50
LAWS = ["--kinds", "table", "sentences"]


@pytest.fixture(scope="module")
def one_process(tmp_path_factory):
    """What one process comes to."""
    folder = tmp_path_factory.mktemp("alone")
    done = alone(folder, folder / "one.npz", *LAWS)
    assert done.code == 0, done.err
    assert f"table: {UPDATES} updates" in done.out
    return results(folder / "one.npz")


def assert_alike(file, one_process):
    found = results(file)
    assert largest_difference(found, {name: one_process[name] for name in found}) < EXACT


@pytest.mark.long
def test_three_workers_make_the_updates_of_one_process(one_process, tmp_path):
    """Uneven parts and uneven speed; the last batch has a row for one of them alone."""
    uneven = ["--parts", "4,30,1", "--slow", "0,0.02,0.005"]
    done = launched(tmp_path, 3, tmp_path / "three.npz", *LAWS, *uneven)
    assert done.code == 0, done
    assert_alike(tmp_path / "three.npz", one_process)


@pytest.mark.soak
def test_two_workers_of_a_cluster_that_sets_tf_config_make_them_too(one_process, tmp_path):
    addresses = LocalPlaces().addresses(2)
    arguments = [tmp_path / "two.npz", *LAWS, "--parts", "5,30"]
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda rank: member(tmp_path, addresses, rank, *arguments), range(2)))
    assert [one.code for one in done] == [0, 0], done
    assert_alike(tmp_path / "two.npz", one_process)


@pytest.mark.long
def test_every_sample_counts_once_whoever_dies_and_however_many_go_on(tmp_path):
    """Worker 1 of 2 dies in mid-epoch, worker 1 of 3 in that of another epoch; one process does the rest."""
    epochs, deaths = 4, ["counts:1@7", "counts:1@13"]
    training = ["--kinds", "counts", "--epochs", epochs, "--parts", "30,5,4"]
    arguments = [tmp_path / "killed.npz", *training, "--die", *deaths]
    first = launched(tmp_path, 2, *arguments, options=["--retries", "0"])
    assert first.code == 137, first
    assert "worker 1: somebody killed it (signal 9)" in first.err
    second = launched(tmp_path, 3, *arguments, options=["--retries", "0"])
    assert second.code == 137, second
    third = launched(tmp_path, 1, *arguments)
    assert third.code == 0, third
    assert (results(tmp_path / "killed.npz")["counts/0"] == -epochs).all()


@pytest.mark.soak
def test_a_worker_that_crashes_is_started_again_with_the_others(tmp_path):
    training = ["--kinds", "counts", "--epochs", 2, "--die", "counts:1@3", "--by", "SIGABRT"]
    done = launched(tmp_path, 2, tmp_path / "crashed.npz", *training)
    assert done.code == 0, done
    assert done.err.count("worker 1: it crashed (signal 6, SIGABRT)") == 1
    assert (results(tmp_path / "crashed.npz")["counts/0"] == -2).all()


@pytest.mark.long
def test_a_worker_that_never_comes_is_named_in_time(tmp_path):
    """Inside a cluster that sets TF_CONFIG itself, of which only this worker is ever started."""
    addresses = LocalPlaces().addresses(2)
    done = member(tmp_path, addresses, 0, tmp_path / "none.npz", options=["--join-timeout", "2"])
    assert done.code == 1, done
    assert f"worker 1 at {addresses[1]} did not come in 2 s" in done.err
    assert not (tmp_path / "none.npz").exists()


def test_joining_after_tensorflow_was_used_says_what_to_do(monkeypatch):
    import tensorflow as tf

    from anybatch.train.backends.tensorflow_workers import join

    config = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}'
    monkeypatch.setenv("TF_CONFIG", config)
    assert tf.constant(1) == 1
    with pytest.raises(TooLate, match="start the script with `anybatch launch SCRIPT`"):
        join()
