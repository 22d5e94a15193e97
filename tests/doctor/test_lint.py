"""The known traps are found where they are, and what is sound raises nothing above a note."""

import ast
import re
import sysconfig
from contextlib import suppress
from itertools import product
from pathlib import Path
from random import Random
from textwrap import indent
from time import process_time

import pytest

import anybatch as ab
from anybatch.doctor import NotPython, lint_text
from anybatch.doctor.codes import CODES
from tests.doctor.articles import ARTICLES
from tests.doctor.flawed_scripts import FLAWED
from tests.doctor.sound_excerpts import EXCERPTS
from tests.doctor.sound_scripts import SOUND

MARK = re.compile(r"# (AB\d+) (error|warning|note)\s*$")


def planted(script):
    """The line, code and severity that a script's comment promises."""
    for number, line in enumerate(script.splitlines(), 1):
        if mark := MARK.search(line):
            return number, mark[1], mark[2]
    raise AssertionError("the script has no mark")


def placed(findings):
    return {(finding.line, finding.code, str(finding.severity)) for finding in findings}


def above_note(findings):
    return {finding.code for finding in findings if finding.severity != "note"}


def applied(script, finding):
    """The script with the finding's own lines put in."""
    first, last = finding.replaces
    lines = script.split("\n")
    return "\n".join([*lines[: first - 1], finding.fix, *lines[last:]])


@pytest.mark.parametrize("script", FLAWED, ids=lambda script: planted(script)[1])
def test_a_planted_trap_is_found_on_its_line_with_its_severity(script):
    assert planted(script) in placed(lint_text(script))


@pytest.mark.parametrize("script", FLAWED, ids=lambda script: planted(script)[1])
def test_a_planted_trap_brings_no_other_warning(script):
    _, code, _ = planted(script)
    assert above_note(lint_text(script)) <= {code, *re.findall(r"(AB\d+) as well", script)}


def with_lines_to_put_in():
    for script in FLAWED:
        _, code, _ = planted(script)
        if any(one.code == code and one.replaces for one in lint_text(script)):
            yield pytest.param(script, code, id=code)


@pytest.mark.parametrize(("script", "code"), list(with_lines_to_put_in()))
def test_the_corrected_lines_put_in_make_the_finding_go_away(script, code):
    (finding,) = [one for one in lint_text(script) if one.code == code]
    corrected = applied(script, finding)
    ast.parse(corrected)
    assert code not in {one.code for one in lint_text(corrected)}
    assert above_note(lint_text(corrected)) <= above_note(lint_text(script))


def test_most_fixes_are_lines_to_put_in():
    assert len({param.id for param in with_lines_to_put_in()}) >= 20


def test_every_code_of_the_linter_is_planted():
    codes = {code for code, what in CODES.items() if what.family.startswith("script")}
    assert {planted(script)[1] for script in FLAWED} == codes


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_script_raises_nothing_above_a_note(name):
    assert not above_note(lint_text(SOUND[name]))


@pytest.mark.parametrize("name", EXCERPTS)
def test_what_only_looks_like_a_trap_raises_nothing_above_a_note(name):
    assert not above_note(lint_text(EXCERPTS[name]))


def test_there_are_twenty_sound_scripts():
    assert len(set(SOUND.values())) >= 20


@pytest.mark.parametrize("name", ARTICLES)
def test_what_is_wrong_in_the_articles_is_named_and_what_is_right_is_not(name):
    script, wrong, noted = ARTICLES[name]
    findings = lint_text(script)
    assert above_note(findings) == wrong
    assert noted <= {finding.code for finding in findings if finding.severity == "note"}


def together(*scripts):
    """Several scripts as functions of one, and at which line each starts."""
    text, starts = "", []
    for number, script in enumerate(scripts):
        starts.append(text.count("\n") + 1)
        text += f"def part_{number}():\n{indent(script, '    ')}\n"
    return text, starts


PAIRS = list(product(range(len(FLAWED)), repeat=2))


@pytest.mark.parametrize("pair", Random(7).sample(PAIRS, 25))
def test_two_traps_in_one_script_are_both_found(pair):
    one, other = (FLAWED[number] for number in pair)
    both_are_found(one, other)


@pytest.mark.soak
def test_any_two_traps_in_one_script_are_both_found():
    for one, other in PAIRS:
        both_are_found(FLAWED[one], FLAWED[other])


def both_are_found(one, other):
    if mixes_order(one, other):
        return
    text, starts = together(one, other)
    found = placed(lint_text(text))
    for script, start in zip((one, other), starts, strict=True):
        line, code, severity = planted(script)
        assert (line + start, code, severity) in found


def mixes_order(*scripts):
    """Slices in stored order are no finding where the script shuffles somewhere."""
    return any("start : start" in one for one in scripts) and any("shuffle(" in one for one in scripts)


def test_a_script_is_never_run(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(f"open({str(tmp_path / 'written')!r}, 'w')\nraise SystemExit(3)\n")
    assert ab.lint(script) == []
    assert not (tmp_path / "written").exists()


def test_findings_come_with_their_worst_first(tmp_path):
    text, _ = together(*FLAWED)
    ranks = [["error", "warning", "note"].index(finding.severity) for finding in lint_text(text)]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == 3


@pytest.mark.parametrize(
    "text",
    ["def", "x = \x00", "(" * 400 + ")" * 400, "x = " + "-" * 100_000 + "1", "'''"],
    ids=["unfinished", "zero byte", "parentheses", "signs", "open string"],
)
def test_what_is_no_python_is_refused_with_its_name(tmp_path, text):
    script = tmp_path / "broken.py"
    script.write_text(text)
    with pytest.raises(NotPython, match=r"broken\.py"):
        ab.lint(script)


def test_a_chain_of_a_thousand_steps_is_read_or_refused():
    chain = "ds = tf.data.TFRecordDataset(f)" + ".map(g)" * 1000 + ".batch(3)"
    with suppress(NotPython):
        assert "AB601" in above_note(lint_text(chain))


def test_functions_that_call_each_other_many_times_are_read_once():
    names = [f"f{number}" for number in range(40)]
    body = "".join(f"    {name}(x)\n" for name in names)
    text = "".join(f"def {name}(x):\n{body}" for name in names)
    assert lint_text(text + "f0(1)\n") == []


def library_files(count):
    folder = Path(sysconfig.get_paths()["stdlib"])
    return Random(3).sample(sorted(folder.glob("*.py")), count)


def test_any_python_file_can_be_read():
    for file in library_files(10):
        assert not above_note(ab.lint(file)), file


@pytest.mark.soak
def test_any_installed_python_file_can_be_read():
    files = sorted(Path(sysconfig.get_paths()["purelib"]).rglob("*.py"))
    for file in Random(5).sample(files, min(500, len(files))):
        with suppress(NotPython):
            ab.lint(file)


ACCUMULATES = """for i, (x, y) in enumerate(ds{number}):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True)) / 4
    g = tape.gradient(loss, model.trainable_variables)
    acc = [a + b for a, b in zip(acc, g)]
    if (i + 1) % 4 == 0:
        opt.apply_gradients(zip(acc, model.trainable_variables))
        acc = [tf.zeros_like(a) for a in acc]
"""
BRANCHES = """if c{number}:
    ds = ds.map(p)
else:
    ds = ds.map(q)
"""
FITTED = """ds{number} = tf.data.TFRecordDataset(f{number})
ds{number} = ds{number}.batch(32).shuffle(1000)
model.fit(ds{number}, epochs=3)
"""


@pytest.mark.parametrize("part", [ACCUMULATES, BRANCHES, FITTED], ids=["loops", "branches", "fits"])
def test_a_long_script_takes_seconds(part):
    text = "import tensorflow as tf\nds = tf.data.TFRecordDataset(f)\n"
    while text.count("\n") < 3000:
        text += part.format(number=text.count("\n"))
    started = process_time()
    lint_text(text + "model.fit(ds.batch(3))\n")
    # one to three seconds on an idle core; what grows with the square takes minutes
    assert process_time() - started < 20


ALSO_FOUND = {
    "a chain kept as an attribute": """import tensorflow as tf
class Stored:
    def __init__(self, files):
        self.ds = tf.data.TFRecordDataset(files)
        self.ds = self.ds.map(p, num_parallel_calls=8)
        self.ds = self.ds.batch(32).prefetch(2)  # AB601 warning
model.fit(Stored(files).ds)
""",
    "elements taken by next": """import tensorflow as tf
ds = tf.data.TFRecordDataset(files).batch(32).map(p, num_parallel_calls=8).prefetch(2)  # AB601 warning
it = iter(ds)
for step in range(1000):
    x, y = next(it)
    train_step(x, y)
""",
    "a class under another name": """import tensorflow as tf
Dataset = tf.data.Dataset
ds = Dataset.from_tensor_slices((x, y)).batch(32).shuffle(100).prefetch(1)  # AB602 warning
model.fit(ds)
""",
    "TensorFlow 1 by its new name": """import tensorflow.compat.v1 as tf
ds = tf.data.TFRecordDataset(files).batch(32).prefetch(1)  # AB601 warning
model.fit(ds)
""",
    "a random function of a function": """import tensorflow as tf
def aug(i): return tf.image.random_flip_left_right(i)
def prep(x, y): return aug(x), y
ds = tf.data.TFRecordDataset(f).map(p, num_parallel_calls=8).map(prep, num_parallel_calls=8)
ds = ds.cache("c")  # AB611 warning
model.fit(ds.shuffle(1000).batch(3).prefetch(1))
""",
    "a retry by recursion": """import tensorflow as tf
def train(bs):
    try:
        model.fit(x, y, batch_size=bs)
    except tf.errors.ResourceExhaustedError:  # AB803 warning
        train(bs // 2)
""",
    "a batch with a short name": """import tensorflow as tf
while not done:
    try:
        model.fit(x, y, batch_size=bs)
        done = True
    except tf.errors.ResourceExhaustedError:  # AB804 warning
        bs //= 2
""",
    "a loss with a short name": """import tensorflow as tf
for x, y in ds:
    with tf.GradientTape() as tape:
        loss = tf.keras.losses.MSE(y, model(x, training=True))  # AB706 warning
    g = tape.gradient(loss, model.trainable_variables)
""",
    "leftovers behind a counter": """import tensorflow as tf
count = 0
for x, y in ds:
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True)) / 4
    g = tape.gradient(loss, model.trainable_variables)
    acc = [a + b for a, b in zip(acc, g)]
    count += 1
    if count == 4:  # AB704 warning
        opt.apply_gradients(zip(acc, model.trainable_variables))
        acc = [tf.zeros_like(a) for a in acc]
        count = 0
""",
    "a count repeated, then taken": """import tensorflow as tf
ds = tf.data.TFRecordDataset(files).shuffle(100).repeat(3)
ds = ds.batch(3).take(500).prefetch(1)  # AB604 warning
model.fit(ds)
""",
}


@pytest.mark.parametrize("name", ALSO_FOUND)
def test_a_trap_written_otherwise_is_found_alone(name):
    script = ALSO_FOUND[name]
    assert planted(script) in placed(lint_text(script))
    assert above_note(lint_text(script)) == {planted(script)[1]}
