"""What `make dist` built, used as a stranger would: nothing of this folder, no compiler."""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_RUST = "/usr/bin:/bin"

SMALL_DATA_SET = """
import numpy as np
import anybatch as ab

files = ab.write("small.tfrecord", [{"x": [n, n + 0.5], "label": n} for n in range(100)], shards=2)
data = ab.read(files).shuffle(seed=7).batch(32)
labels = np.concatenate([batch["label"] for batch in data])
assert sorted(labels.tolist()) == list(range(100)) != labels.tolist()
"""


def built(pattern):
    found = sorted((ROOT / "dist").glob(pattern))
    assert len(found) == 1, f"dist/{pattern}: {len(found)} files; `make dist` builds one and runs this"
    return found[0]


@pytest.fixture(scope="module")
def wheel():
    return built("*.whl")


@pytest.fixture(scope="module")
def sdist():
    return built("*.tar.gz")


@pytest.fixture(scope="module")
def stranger(wheel, tmp_path_factory):
    """Run a command of an environment that holds the wheel and what it depends on, and nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder / "env", with_pip=True)
    path = f"{folder / 'env' / 'bin'}:{WITHOUT_RUST}"
    assert shutil.which("cargo", path=path) is None
    assert shutil.which("rustc", path=path) is None
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}

    def run(*words, **more):
        ended = subprocess.run(
            words,
            cwd=folder,
            env={"PATH": path, "HOME": str(folder), **kept, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    run(
        "pip", "install", "--quiet", "--only-binary", ":all:", "-c", str(ROOT / "constraints.txt"), str(wheel)
    )
    run.folder = folder
    return run


def test_the_wheel_is_for_any_python_from_3_11_on_and_any_linux_of_the_last_ten_years(wheel):
    python, abi, platform = wheel.stem.split("-")[2:]
    assert (python, abi) == ("cp311", "abi3")
    assert "manylinux_2_17" in platform


def test_the_wheel_holds_types_and_everything_that_is_read_at_run_time(wheel):
    inside = set(zipfile.ZipFile(wheel).namelist())
    ours = {
        str(Path("anybatch") / path.relative_to(ROOT / "src" / "anybatch"))
        for path in (ROOT / "src" / "anybatch").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }
    assert ours <= inside
    assert {"anybatch/py.typed", "anybatch/_native.pyi", "anybatch/_native.abi3.so"} <= inside
    assert not [name for name in inside if name.startswith(("tests", "benchmarks"))]


def test_a_stranger_reads_verifies_and_inspects_without_rust_and_without_a_framework(stranger):
    assert stranger("anybatch", "--version").startswith("anybatch ")
    stranger("python", "-c", SMALL_DATA_SET)
    assert "every checksum is right" in stranger("anybatch", "verify", "small*.tfrecord")
    assert "label" in stranger("anybatch", "inspect", "small*.tfrecord")
    assert "records/s" in stranger("anybatch", "bench", "small*.tfrecord", "--rounds", "1")


def test_the_demo_runs_from_the_wheel(stranger):
    # TensorFlow is 2 GB: it is lent, behind everything that the wheel brought
    lent = next(path for path in sys.path if path.endswith("site-packages"))
    (site,) = (stranger.folder / "env").glob("lib/python*/site-packages")
    (site / "lent.pth").write_text(lent)
    where = stranger("python", "-c", "import anybatch; print(anybatch.__file__)")
    assert where.startswith(str(site))
    told = stranger("anybatch", "demo", TF_CPP_MIN_LOG_LEVEL="3")
    assert "plain Keras was killed by the kernel" in told or "plain Keras was ended by the supervisor" in told
    assert "accuracy after each epoch" in told


def test_the_sdist_holds_what_it_takes_to_build_and_builds(sdist, tmp_path):
    with tarfile.open(sdist) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
    assert {"Cargo.lock", "LICENSE", "README.md", "pyproject.toml"} <= inside
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    target = str(ROOT / "target" / "sdist")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            tmp_path,
            sdist,
        ],
        env={**os.environ, "PATH": tools, "CARGO_TARGET_DIR": target},
        check=True,
    )
    assert len(list(tmp_path.glob("anybatch-*.whl"))) == 1
