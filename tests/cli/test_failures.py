import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shard_files import left_behind, some_records, write_shard

RECORDS = some_records(50)
COMMANDS = ["index", "inspect", "verify", "repair", "reshard"]
every_command = pytest.mark.parametrize("command", COMMANDS)

# a first run imports what is needed: Python itself may lie where nobody else may look
WITHOUT_RIGHTS = """
import os
from typer.testing import CliRunner
from anybatch.cli import app, main
CliRunner().invoke(app, ["verify", "missing", "--json"])
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
main()
"""
SMALL_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from anybatch.cli import main
main()
"""


@pytest.fixture
def good(tmp_path):
    return write_shard(tmp_path / "good.tfrecord", RECORDS)


def arguments_of(command, folder):
    return {"repair": ["--to", folder], "reshard": ["--to", folder, "--shards", 2]}.get(command, [])


def failed(anybatch, command, path, tmp_path):
    """Run a command that cannot do what it is asked for; return its one line."""
    given = [path, *arguments_of(command, tmp_path / "new")]
    run = anybatch(command, *given)
    assert run.code == 2
    assert not (tmp_path / "new").exists()
    for_programs = anybatch(command, *given, "--json")
    assert for_programs.code == 2
    assert isinstance(for_programs.json, dict)
    return run.complaint


def in_a_process(program, *arguments):
    run = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in run.stderr
    return run


@every_command
def test_a_folder_is_one_line(anybatch, command, tmp_path):
    assert "is a folder" in failed(anybatch, command, tmp_path, tmp_path)


@every_command
@pytest.mark.parametrize("name", ["missing.tfrecord", "*.nothing"])
def test_no_such_file_is_one_line(anybatch, command, name, tmp_path):
    assert "0 files match" in failed(anybatch, command, tmp_path / name, tmp_path)


@every_command
def test_an_empty_name_is_no_folder(anybatch, command, tmp_path):
    assert "0 files match ``" in failed(anybatch, command, "", tmp_path)


@every_command
def test_a_link_to_nowhere_is_one_line(anybatch, command, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    assert "0 files match" in failed(anybatch, command, tmp_path / "link", tmp_path)


@pytest.mark.parametrize("command", ["index", "inspect", "repair", "reshard"])
def test_a_file_that_is_no_tfrecord_is_one_line(anybatch, command, tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("these are words\nand nothing but words")
    line = failed(anybatch, command, text, tmp_path)
    assert "text" in line
    assert line.endswith("; a narrower glob leaves it out")


@every_command
def test_a_missing_file_is_named_once(anybatch, command, tmp_path):
    missing = str(tmp_path / "missing.tfrecord")
    assert failed(anybatch, command, missing, tmp_path).count(missing) == 1


@pytest.mark.parametrize(
    ("arguments", "way_out"),
    [
        (["lint", "missing.py"], "check the path"),
        (["run", "missing.py"], "check the path"),
        (["lint", "/"], "name a file"),
        (["doctor", "FILE", "--html", "/no/such/folder/page.html"], "check the path"),
    ],
)
def test_what_the_system_refuses_comes_with_a_way_out(anybatch, arguments, way_out, good):
    run = anybatch(*(good if word == "FILE" else word for word in arguments))
    assert run.code == 2
    assert run.complaint.endswith(f"; {way_out}")


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "--json"],
        ["verify", "FILE", "--json", "--nonsense"],
        ["doctor", "FILE", "--batch-size", "many", "--json"],
        ["reshard", "FILE", "--to", "new", "--json"],
        ["nonsense", "--json"],
        ["--nonsense", "--json"],
    ],
)
def test_wrong_arguments_are_a_document_too(anybatch, arguments, good):
    run = anybatch(*(good if word == "FILE" else word for word in arguments))
    assert run.code == 2
    assert run.json["error"]


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize("command", ["inspect", "lint"])
def test_output_that_has_no_room_is_one_line(command, options, good):
    named = good if command == "inspect" else __file__
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "anybatch", command, named, *options],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert run.returncode == 2
    (line,) = run.stderr.splitlines()
    assert "no room" in line


def test_for_verify_a_file_that_is_no_tfrecord_is_something_it_found(anybatch, tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("these are words")
    run = anybatch("verify", text)
    assert run.code == 1
    assert "text" in run.complaint


@every_command
def test_empty_files_are_fine_wherever_something_can_be_said_of_them(anybatch, command, tmp_path):
    empty = write_shard(tmp_path / "empty.tfrecord", [])
    run = anybatch(command, empty, *arguments_of(command, tmp_path / "new"))
    assert run.code == (2 if command == "reshard" else 0)
    if command == "reshard":
        assert "0 records" in run.complaint


@pytest.mark.parametrize("command", ["verify", "repair", "reshard"])
def test_a_file_without_permission_is_one_line(command, good, tmp_path):
    # root may read everything, so somebody else has to try, and be able to come here
    for folder in (tmp_path, *tmp_path.parents):
        if folder.name.startswith(("pytest-", "test_")):
            folder.chmod(0o777 if folder == tmp_path else 0o755)
    Path(good).chmod(0)
    run = in_a_process(WITHOUT_RIGHTS, command, good, *arguments_of(command, tmp_path / "new"), "--json")
    assert run.returncode == 2, run.stderr
    (line,) = run.stderr.splitlines()
    assert "Permission denied" in line
    assert good in line
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("command", ["repair", "reshard"])
def test_what_exists_is_not_overwritten(anybatch, command, good, tmp_path):
    arguments = [command, good, *arguments_of(command, tmp_path / "new")]
    assert anybatch(*arguments).code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "new").iterdir()}
    run = anybatch(*arguments)
    assert run.code == 2
    assert "exists and nothing is overwritten" in run.complaint
    assert {path: path.read_bytes() for path in (tmp_path / "new").iterdir()} == before


def test_repairing_into_the_folder_of_the_shards_changes_nothing(anybatch, good, tmp_path):
    before = Path(good).read_bytes()
    assert anybatch("repair", good, "--to", tmp_path).code == 2
    assert (left_behind(tmp_path), Path(good).read_bytes()) == (["good.tfrecord"], before)


@pytest.mark.parametrize("engine", [[], ["--engine", "local"]])
@pytest.mark.parametrize("name", [[], ["--name", "other"]])
def test_resharding_into_the_folder_of_the_shards_would_double_them(anybatch, engine, name, good, tmp_path):
    run = anybatch("reshard", good, "--to", tmp_path, "--shards", 2, *name, *engine)
    assert run.code == 2
    assert "holds these records already" in run.complaint
    assert left_behind(tmp_path) == ["good.tfrecord"]


def test_resharding_into_another_number_would_double_what_is_there(anybatch, good, tmp_path):
    assert anybatch("reshard", good, "--to", tmp_path / "new", "--shards", 2).code == 0
    run = anybatch("reshard", good, "--to", tmp_path / "new", "--shards", 3)
    assert run.code == 2
    assert "is of another set of shards of this name" in run.complaint


@pytest.mark.parametrize("command", ["repair", "reshard"])
def test_a_file_in_place_of_the_folder_is_one_line(anybatch, command, good, tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("mine")
    run = anybatch(command, good, *arguments_of(command, taken))
    assert run.code == 2
    assert "Not a directory" in run.complaint


@pytest.mark.parametrize("command", ["repair", "reshard"])
@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_full_disk_is_one_line_and_leaves_nothing(command, compression, tmp_path, small_disk):
    file = write_shard(tmp_path / "large.tfrecord", [os.urandom(1000) for _ in range(500)], compression)
    options = ["--shuffle"] if command == "reshard" else []
    run = small_disk(command, file, options)
    assert run.returncode == 2, run.stderr
    (line,) = run.stderr.splitlines()
    assert line.startswith("anybatch: no room for what is written")


@pytest.fixture
def small_disk(tmp_path):
    """Run a command whose new files do not fit: a real small disk for root, a limit for others."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", folder], capture_output=True, check=False
    )
    program = "from anybatch.cli import main; main()" if mounted.returncode == 0 else SMALL_FILES

    def run(command, file, options):
        result = in_a_process(program, command, file, *arguments_of(command, folder / "new"), *options)
        assert left_behind(folder) == []
        return result

    yield run
    if mounted.returncode == 0:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["reshard", "FILE", "--to", "new", "--shards", "0"],
        ["reshard", "FILE", "--to", "new"],
        ["reshard", "FILE", "--to", "new", "--shards", "2", "--seed", "-1"],
        ["reshard", "FILE", "--to", "new", "--shards", "2", "--compression", "zip"],
        ["repair", "FILE"],
        ["repair", "FILE", "--to", ""],
        ["reshard", "FILE", "--to", "", "--shards", "2"],
        ["run", "--report", "no/such/folder/page.html", __file__],
        ["run", "--report", "/", __file__],
        ["verify"],
        ["nonsense"],
    ],
)
def test_arguments_that_make_no_sense_are_exit_code_2(anybatch, arguments, good):
    assert anybatch(*(good if word == "FILE" else word for word in arguments)).code == 2


def test_a_name_that_is_a_path_is_one_line(anybatch, good, tmp_path):
    run = anybatch("reshard", good, "--to", tmp_path / "new", "--shards", 2, "--name", "a/b")
    assert run.code == 2
    assert "without a folder" in run.complaint


def test_a_reader_that_has_seen_enough_ends_the_report_quietly(good):
    command = f"{sys.executable} -m anybatch inspect {good} | true"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert run.stderr == ""


def test_names_that_are_no_text_can_be_printed(tmp_path):
    file = os.fsencode(tmp_path) + b"/\xff\xfe.tfrecord"
    Path(os.fsdecode(file)).write_bytes(b"no records")
    run = in_a_process("from anybatch.cli import main; main()", "verify", os.fsdecode(file))
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1


def test_an_error_is_a_document_too(anybatch, tmp_path):
    run = anybatch("repair", tmp_path / "missing", "--to", tmp_path / "new", "--json")
    assert "0 files match" in json.loads(run.out)["error"]
