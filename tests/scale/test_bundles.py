from hypothesis import given
from hypothesis import strategies as st

from anybatch.scale.bundles import _MOST_BYTES, _PER_PROCESSOR, bundled
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
    assert len(bundles) >= min(len(tasks), _PER_PROCESSOR * max(1, processors))


def test_a_bundle_says_how_many_it_has():
    tasks = [Task(number, number, f"`{number}`", 0, 0) for number in range(64)]
    first = next(iter(bundled(tasks, 1)))
    assert first.what == "`0` and 3 more"
    assert next(iter(bundled(tasks[:1], 1))).what == "`0`"
