from hypothesis import given
from hypothesis import strategies as st

from anybatch.scale.bundles import _MOST_BYTES, _MOST_TASKS, _SHARES, bundled
from anybatch.scale.engine import Task

MB = 1 << 20
sizes = st.lists(st.integers(0, 2048), max_size=400)


@given(sizes, st.integers(0, 9))
def test_every_task_is_in_one_bundle_in_order(megabytes, processors):
    tasks = [Task(number, number, "", size * MB, number) for number, size in enumerate(megabytes)]
    bundles = list(bundled(tasks, processors))
    assert [task for bundle in bundles for task in bundle.tasks] == tasks
    for bundle in bundles:
        assert len(bundle.tasks) == 1 or sum(task.file_bytes for task in bundle.tasks) <= _MOST_BYTES
        assert bundle.needed_bytes == max(task.needed_bytes for task in bundle.tasks)
    shares = _SHARES * max(1, processors)
    assert len(bundles) >= min(len(tasks), shares)
    # whoever is done last has had one task more than the others, not a bundle
    assert all(len(bundle.tasks) == 1 for bundle in bundles[-shares:])


def test_many_small_tasks_never_go_all_at_once():
    tasks = [Task(number, number, "", 1, 0) for number in range(100_000)]
    lengths = [len(bundle.tasks) for bundle in bundled(tasks, 1)]
    assert sum(lengths) == len(tasks)
    assert max(lengths) == _MOST_TASKS
    assert len(lengths) < 200


def test_a_bundle_says_how_many_it_has():
    tasks = [Task(number, number, f"`{number}`", 0, 0) for number in range(64)]
    first = next(iter(bundled(tasks, 1)))
    assert first.what == "`0` and 20 more"
    assert next(iter(bundled(tasks[:1], 1))).what == "`0`"


def test_what_is_left_of_a_bundle_is_a_bundle_until_nothing_is():
    tasks = [Task(number, number, f"`{number}`", 0, 9 - number) for number in range(64)]
    left = next(iter(bundled(tasks, 4)))
    assert len(left.tasks) == 5
    for number in range(5):
        assert left.tasks == tuple(tasks[number:5])
        assert left.needed_bytes == 9 - number
        left = left.behind_the_first()
    assert left is None
