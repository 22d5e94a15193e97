"""Who names no limit has one all the same, a container's or `ulimit -v`: batches are split to keep it."""

import json
import os
import subprocess
import sys

import pytest

from anybatch.supervise.own_group import own_group
from tests.supervise.supervised import MB, needs_group

pytestmark = pytest.mark.long
GROUP_BYTES = 400 * MB


def told(tmp_path, *arguments, first=None):
    done = subprocess.run(
        [sys.executable, "-m", "tests.train_plan.unasked_child", *arguments],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        preexec_fn=first,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_where_nobody_has_set_a_limit_batches_stay_whole(tmp_path):
    assert told(tmp_path) == {"parts": 1, "events": [], "products": None}


def test_a_batch_is_split_to_fit_into_what_may_be_mapped(tmp_path):
    found = told(tmp_path, "space")
    assert found["parts"] > 1
    assert found["events"] == []
    # what TensorFlow would choose may be wrong without a word
    assert found["products"] == "false"


@needs_group
@pytest.mark.parametrize(
    "kind", [pytest.param([], marks=pytest.mark.soak, id="arrays"), ["dataset"]], ids=str
)
def test_a_batch_is_split_to_fit_into_a_memory_group(tmp_path, kind):
    group = own_group(GROUP_BYTES)
    try:
        found = told(tmp_path, *kind, first=lambda: group.entrance.write_text(str(os.getpid())))
        assert found["parts"] > 1
        assert group.group.kills() == 0
    finally:
        group.remove()
