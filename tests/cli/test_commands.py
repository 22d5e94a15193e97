import fcntl
import gzip
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import anybatch
from anybatch.cli import app
from tests.shard_files import (
    flipped,
    left_behind,
    records_in,
    some_records,
    starts_of,
    stream_of,
    write_shard,
)

RECORDS = some_records(50)
LARGE = [bytes([number]) * 50_000 for number in range(8)]
COMMANDS = ["index", "inspect", "verify", "repair", "reshard"]


def arguments_of(command, tmp_path):
    """What a command needs besides paths."""
    return {
        "repair": ["--to", tmp_path / "new"],
        "reshard": ["--to", tmp_path / "new", "--shards", 3],
    }.get(command, [])


@pytest.fixture
def good(tmp_path):
    return write_shard(tmp_path / "good.tfrecord", RECORDS)


@pytest.fixture
def bad(tmp_path):
    file = tmp_path / "bad.tfrecord"
    file.write_bytes(flipped(stream_of(RECORDS), starts_of(RECORDS)[7] + 13))
    return str(file)


@pytest.fixture
def examples(tmp_path):
    rng = np.random.default_rng(0)
    records = [
        {"image": rng.bytes(16), "label": number % 10, "weight": [0.5, number / 10]} for number in range(600)
    ]
    records[5]["weight"] = [float("nan"), 1.0]
    return anybatch.write(tmp_path / "train.tfrecord", records, shards=2)


@pytest.mark.parametrize("command", [command.name for command in app.registered_commands])
def test_every_command_explains_itself_with_an_example(anybatch, command):
    run = anybatch(command, "--help")
    assert run.code == 0
    assert f"Example:  anybatch {command}" in run.out
    assert "--json" in run.out
    assert "<bool>" not in run.out


def test_paragraphs_of_the_help_fill_the_terminal(anybatch):
    # the line breaks of a docstring would leave half-empty lines between full ones
    help_lines = anybatch("run", "--help").out.splitlines()
    first = next(number for number, line in enumerate(help_lines) if "Each death" in line)
    paragraph = [line.strip() for line in help_lines[first : first + 4]]
    assert min(map(len, paragraph)) > 60, paragraph


def test_the_version_is_printed(anybatch):
    assert anybatch("--version").out == "anybatch 0.1.0\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_a_report_for_people(anybatch, command, good, tmp_path):
    run = anybatch(command, good, *arguments_of(command, tmp_path))
    assert (run.code, run.err) == (0, "")
    assert "50" in run.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_one_json_document(anybatch, command, good, tmp_path):
    run = anybatch(command, good, *arguments_of(command, tmp_path), "--json")
    assert (run.code, run.err) == (0, "")
    assert run.json["records"] == 50
    assert run.json["damaged"] == []


@pytest.mark.parametrize("command", ["index", "inspect", "verify"])
def test_damage_is_exit_code_1_with_its_place(anybatch, command, good, bad):
    at, length = starts_of(RECORDS)[7], len(RECORDS[7]) + 16
    run = anybatch(command, good, bad)
    assert run.code == 1
    assert f"{at:,}" in run.out
    assert "checksum" in run.out
    (damage,) = anybatch(command, good, bad, "--json").json["damaged"]
    assert (damage["file"], damage["offset"], damage["length"]) == (bad, at, length)


def test_an_index_says_where_it_lies_and_is_made_once(anybatch, good):
    (first,) = anybatch("index", good, "--json").json["shards"]
    assert Path(first["sidecar"]).is_file()
    assert first["read"]
    assert not anybatch("index", good, "--json").json["shards"][0]["read"]
    assert anybatch("index", good, "--json", "--force").json["shards"][0]["read"]


def test_verify_reads_again_unless_told_to_trust(anybatch, tmp_path):
    file = write_shard(tmp_path / "large", LARGE)
    assert not anybatch("index", file, "--json").json["shards"][0]["verified"]
    assert anybatch("verify", file, "--json").json["shards"][0]["verified"]
    assert anybatch("verify", file, "--json").json["shards"][0]["read"]
    run = anybatch("verify", file, "--json", "--trust-index")
    assert (run.code, run.json["shards"][0]["read"]) == (0, False)


def test_verify_reports_each_file_that_it_cannot_check_and_checks_the_others(anybatch, good, bad, tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("words and words")
    run = anybatch("verify", text, good, bad, "--json")
    assert run.code == 1
    assert str(text) in run.complaint
    assert ["problem" in shard for shard in run.json["shards"]] == [True, False, False]
    assert run.json["records"] == 99
    assert len(run.json["damaged"]) == 1
    assert anybatch("verify", tmp_path / "missing", bad).code == 2


def test_inspect_shows_features_ranges_and_what_is_missing(anybatch, examples):
    found = anybatch("inspect", *examples, "--json").json
    image, label, weight = found["features"]
    assert (image["kind"], image["bytes_per_value"], image["read_as"]) == ("bytes", [16, 16], "Bytes()")
    assert (label["range"], label["missing"], label["values"]) == ([0, 9], 0, [1, 1])
    assert (weight["read_as"], weight["not_finite"]) == ("Numbers('float32', shape=(2,))", 1)
    assert found["looked_at"] == 512
    assert anybatch("inspect", *examples, "--json", "--all").json["looked_at"] == 600
    text = anybatch("inspect", *examples).out
    assert "512 of 600 records" in text
    assert "NaN" in text


def test_inspect_counts_records_by_size(anybatch, tmp_path):
    sizes = [0, 1, 3, 3, 4, 100]
    file = write_shard(tmp_path / "a", [bytes(size) for size in sizes])
    found = anybatch("inspect", file, "--json").json["record_bytes"]
    assert (found["smallest"], found["largest"], found["mean"]) == (0, 100, sum(sizes) / 6)
    counts = {
        (one["at_least"], one["at_most"]): one["records"] for one in found["histogram"] if one["records"]
    }
    assert counts == {(0, 0): 1, (1, 1): 1, (2, 3): 2, (4, 7): 1, (64, 127): 1}


def test_inspect_takes_records_that_are_no_examples(anybatch, good):
    run = anybatch("inspect", good)
    assert run.code == 0
    assert "tf.train.Example" in run.out


def test_inspect_reports_shards_that_disagree(anybatch, tmp_path, examples):
    other = anybatch_write(tmp_path / "other.tfrecord", [{"label": 0.5, "weight": [1.0, 2.0]}])
    run = anybatch("inspect", *examples, other)
    assert run.code == 1
    assert "wrong: feature `label`" in run.out
    findings = anybatch("inspect", *examples, other, "--json").json["findings"]
    assert [finding["wrong"] for finding in findings].count(True) == 1
    assert any("`image`" in finding["what"] for finding in findings)


def anybatch_write(path, records):
    return anybatch.write(path, records)[0]


def test_inspect_notes_empty_shards(anybatch, good, tmp_path):
    run = anybatch("inspect", good, write_shard(tmp_path / "empty", []))
    assert run.code == 0
    assert "1 of 2 shards hold no records" in run.out


def test_inspect_says_what_it_could_not_read(anybatch, good, tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("words and words")
    run = anybatch("inspect", good, text, "--json")
    assert run.code == 2
    assert str(text) in run.complaint
    assert run.json["records"] == 50


def test_repair_writes_clean_copies_and_keeps_what_was_damaged(anybatch, good, bad, tmp_path):
    run = anybatch("repair", good, bad, "--to", tmp_path / "new")
    assert run.code == 0
    assert "99 good records" in run.out
    assert records_in(tmp_path / "new" / "bad.tfrecord") == RECORDS[:7] + RECORDS[8:]
    assert anybatch("verify", tmp_path / "new" / "*.tfrecord").code == 0
    assert {"bad.tfrecord.damaged", "bad.tfrecord.damaged.json"} < set(left_behind(tmp_path / "new"))


def test_repair_can_leave_undamaged_shards(anybatch, good, bad, tmp_path):
    run = anybatch("repair", good, bad, "--to", tmp_path / "new", "--only-damaged", "--json")
    assert [shard["file"] for shard in run.json["shards"]] == [None, str(tmp_path / "new" / "bad.tfrecord")]


def test_reshard_shuffles_by_seed_and_compresses(anybatch, good, tmp_path):
    options = ["--shuffle", "--seed", 7, "--compression", "gzip", "--name", "mixed", "--json"]
    run = anybatch("reshard", good, "--to", tmp_path / "new", "--shards", 3, *options)
    files = [shard["file"] for shard in run.json["shards"]]
    assert [Path(file).name for file in files] == [f"mixed-0000{at}-of-00003.tfrecord.gz" for at in range(3)]
    assert [shard["records"] for shard in run.json["shards"]] == [17, 17, 16]
    assert sorted(records_in(*files)) == sorted(RECORDS) != records_in(*files)
    assert gzip.decompress(Path(files[0]).read_bytes())


def test_reshard_leaves_damaged_records_out_only_if_told_to(anybatch, bad, tmp_path):
    refused = anybatch("reshard", bad, "--to", tmp_path / "new", "--shards", 3)
    assert refused.code == 2
    assert "--on-corrupt skip" in refused.complaint
    run = anybatch("reshard", bad, "--to", tmp_path / "new", "--shards", 3, "--on-corrupt", "skip", "--json")
    assert (run.code, run.json["records"], len(run.json["damaged"])) == (0, 49, 1)


def test_globs_are_expanded_here_too(anybatch, good, bad):
    found = anybatch("verify", Path(good).parent / "*.tfrecord", "--json").json
    assert [Path(shard["file"]).name for shard in found["shards"]] == ["bad.tfrecord", "good.tfrecord"]


def test_names_with_brackets_are_printed_as_they_are(anybatch, tmp_path):
    file = tmp_path / "[red]a[1].tfrecord"
    file.write_bytes(flipped(stream_of(RECORDS), 20))
    assert "[red]a[1].tfrecord" in anybatch("verify", file).out


@pytest.mark.parametrize("columns", [40, 80])
def test_on_a_narrow_terminal_only_the_longest_column_is_folded(examples, columns):
    lines = on_a_terminal(columns, "inspect", *examples)
    (header,) = (line for line in lines if line.startswith("file "))
    assert header.split() == ["file", "records", "size", "compression", "checked", "damaged"]
    assert sum("every record" in line for line in lines) == 2
    assert sum("█" in line for line in lines) == 1


def on_a_terminal(columns, *arguments):
    """Return the lines that a command prints on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    environment.pop("COLUMNS", None)
    command = [sys.executable, "-m", "anybatch", *map(str, arguments)]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as run:
        os.close(theirs)
        printed = b""
        # the end of a terminal is an error
        with suppress(OSError):
            while piece := os.read(ours, 4096):
                printed += piece
    os.close(ours)
    assert run.returncode == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed.decode()).splitlines()


def test_a_long_ledger_is_cut_for_people_and_whole_for_programs(anybatch, tmp_path):
    file = tmp_path / "very-bad.tfrecord"
    content = stream_of(RECORDS)
    for start in starts_of(RECORDS)[:-1]:
        content = flipped(content, start + 13)
    file.write_bytes(content)
    assert "and 10 more" in anybatch("verify", file).out
    assert len(anybatch("verify", file, "--json").json["damaged"]) == 50
