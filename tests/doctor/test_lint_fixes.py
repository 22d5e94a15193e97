"""Lines that a finding proposes can be put in as they are: they parse, and nothing of the script is lost."""

import ast
from collections import Counter

import pytest

from anybatch.doctor import lint_text
from tests.doctor.articles import ARTICLES
from tests.doctor.flawed_scripts import FLAWED

LOOP = """import tensorflow as tf
for i, (x, y) in enumerate(ds):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    g = tape.gradient(loss, model.trainable_variables)
    acc = [a + b for a, b in zip(acc, g)]
"""
WRITTEN_OTHERWISE = {
    "a trailing comma in fit": """import tensorflow as tf
ds = tf.data.TFRecordDataset(files).shuffle(100).repeat().batch(10).prefetch(1)
model.fit(
    ds,
    epochs=3,
)
""",
    "a trailing comma on one line": """import tensorflow as tf
ds = tf.data.TFRecordDataset(files).shuffle(100).batch(10).map(parse,).prefetch(1)
model.fit(ds)
""",
    "a trailing comma and a comment": """import tensorflow as tf
ds = tf.data.TFRecordDataset(files).shuffle(100).batch(10)
ds = ds.map(
    parse,  # as written
).prefetch(1)
model.fit(ds)
""",
    "comments in a chain": """import tensorflow as tf
ds = (
    tf.data.TFRecordDataset(files)
    .batch(32)  # as in the paper
    .shuffle(1000)  # mix
    .prefetch(1)
)
model.fit(ds)
""",
    "a comment between two steps": """import tensorflow as tf
ds = (
    tf.data.TFRecordDataset(files)
    .map(lambda r: tf.image.random_flip_left_right(r), num_parallel_calls=4)  # augment
    # keep it
    .cache("c")
    .shuffle(100)
    .batch(32)
    .prefetch(1)
)
model.fit(ds)
""",
    "a comment inside a step": """import tensorflow as tf
ds = (
    tf.data.TFRecordDataset(files)
    .batch(32)
    .shuffle(  # large
        1000,  # as many as there are
        seed=3,
    )
    .prefetch(1)
)
model.fit(ds)
""",
    "backslashes": """import tensorflow as tf
ds = tf.data.TFRecordDataset(files) \\
    .batch(32) \\
    .shuffle(1000) \\
    .prefetch(1)
model.fit(ds)
""",
    "a text with spaces": """import tensorflow as tf
ds = tf.data.TFRecordDataset(files)
ds = ds.map(lambda r: tf.image.random_flip_left_right(r), num_parallel_calls=4).cache("my  cache .d")
model.fit(ds.shuffle(9).batch(3).prefetch(1))
""",
    "statements on one line": """import tensorflow as tf
ds = tf.data.TFRecordDataset(files); ds = ds.batch(3); ds = ds.shuffle(100); ds = ds.prefetch(1)
model.fit(ds)
""",
    "the last statement of a line": """import tensorflow as tf
ds = tf.data.TFRecordDataset(files); ds = ds.batch(3); ds = ds.prefetch(1); ds = ds.shuffle(100)
model.fit(ds)
""",
    "a step under a condition": """import tensorflow as tf
ds = tf.data.TFRecordDataset(files).batch(3)
if mixed: ds = ds.shuffle(100)
model.fit(ds.prefetch(1))
""",
    "parentheses around a choice": """import tensorflow as tf
ds = (tf.data.TFRecordDataset(a) if small else tf.data.TFRecordDataset(b)).batch(3).shuffle(100).prefetch(1)
model.fit(ds)
""",
    "letters of two bytes": """import tensorflow as tf
ds = tf.data.TFRecordDataset("Größe/äöü").batch(3).shuffle(100).prefetch(1)
model.fit(ds)
""",
    "an update on the line of its condition": LOOP
    + "    if (i + 1) % 4 == 0: opt.apply_gradients(zip(acc, model.trainable_variables))\n",
    "an update behind another statement": LOOP
    + "    if (i + 1) % 4 == 0:\n"
    + "        n += 1; opt.apply_gradients(zip(acc, model.trainable_variables))\n",
    "an empty name for the cache": """import tensorflow as tf
ds = tf.data.TFRecordDataset(files).cache(filename="").shuffle(100).batch(3).prefetch(1)
model.fit(ds)
""",
}


def proposed():
    scripts = {**WRITTEN_OTHERWISE, **{str(number): one for number, one in enumerate(FLAWED)}}
    scripts |= {name: script for name, (script, *_) in ARTICLES.items()}
    for name, script in scripts.items():
        for one in lint_text(script):
            if one.replaces:
                yield pytest.param(script, one, id=f"{name} {one.code}")


def put_in(script, finding):
    first, last = finding.replaces
    lines = script.split("\n")
    return "\n".join([*lines[: first - 1], *([finding.fix] if finding.fix else []), *lines[last:]])


def held(script):
    nodes = list(ast.walk(ast.parse(script)))
    called = [one.func.attr for one in nodes if isinstance(one, ast.Call) and hasattr(one.func, "attr")]
    return Counter(
        called + [one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    )


@pytest.mark.parametrize(("script", "finding"), list(proposed()))
def test_lines_that_are_proposed_parse_and_lose_no_call(script, finding):
    changed = put_in(script, finding)
    assert set(held(script) - held(changed)) <= ({"TFRecordDataset"} if finding.code == "AB623" else set())
    assert len(lint_text(changed)) <= len(lint_text(script))


def fixes(name, code):
    (finding,) = [one for one in lint_text(WRITTEN_OTHERWISE[name]) if one.code == code]
    return put_in(WRITTEN_OTHERWISE[name], finding) if finding.replaces else finding.fix


def test_an_argument_behind_a_trailing_comma_gets_a_line_of_its_own():
    assert "    epochs=3,\n    steps_per_epoch=len(x_train) // batch_size,\n)" in fixes(
        "a trailing comma in fit", "AB607"
    )


def test_comments_in_a_chain_stay_where_they_are():
    changed = fixes("comments in a chain", "AB602")
    assert "(files).shuffle(1000)\n    .batch(32)  # as in the paper\n" in changed
    assert "# keep it\n    .shuffle(100)" in fixes("a comment between two steps", "AB611")


def test_comments_inside_a_moved_step_swallow_nothing():
    assert "(files).shuffle(1000, seed=3,)\n    .batch(32)\n    .prefetch(1)" in fixes(
        "a comment inside a step", "AB602"
    )


def test_a_chain_of_backslashes_stays_one():
    assert "(files).shuffle(1000) \\\n    .batch(32) \\\n    .prefetch(1)\n" in fixes("backslashes", "AB602")


def test_a_text_keeps_its_spaces():
    assert '.cache("my  cache .d").map(' in fixes("a text with spaces", "AB611")


def test_statements_on_one_line_are_moved_one_by_one():
    ends = "ds = ds.shuffle(100).batch(3); ds = ds.prefetch(1)\nmodel.fit(ds)\n"
    assert fixes("statements on one line", "AB602").endswith(ends)
    assert fixes("the last statement of a line", "AB602").endswith(ends)


def test_a_step_under_a_condition_is_not_moved_out_of_it():
    assert fixes("a step under a condition", "AB602") == ".shuffle(100)  # belongs into line 2"


def test_a_step_goes_behind_the_parentheses_of_what_it_is_called_on():
    assert "(b)).shuffle(100).batch(3)" in fixes("parentheses around a choice", "AB602")


def test_leftovers_are_divided_as_the_other_updates_are():
    script = LOOP + (
        "    if (i + 1) % 4 == 0:\n"
        "        acc = [a / 4 for a in acc]\n"
        "        opt.apply_gradients(zip(acc, model.trainable_variables))\n"
        "        acc = [tf.zeros_like(a) for a in acc]\n"
    )
    (finding,) = [one for one in lint_text(script) if one.code == "AB704"]
    assert finding.fix.endswith(
        "if not ((i + 1) % 4 == 0):\n"
        "    acc = [a / 4 for a in acc]\n"
        "    opt.apply_gradients(zip(acc, model.trainable_variables))"
    )


def test_leftovers_behind_a_counter_are_applied_if_it_counted_any():
    script = LOOP.replace("model(x, training=True))", "model(x, training=True)) / 4") + (
        "    count += 1\n"
        "    if count == 4:\n"
        "        opt.apply_gradients(zip(acc, model.trainable_variables))\n"
        "        count = 0\n"
    )
    (finding,) = [one for one in lint_text(script) if one.code == "AB704"]
    assert finding.fix.endswith("\nif count:\n    opt.apply_gradients(zip(acc, model.trainable_variables))")
    assert "AB704" not in {one.code for one in lint_text(put_in(script, finding))}


def test_a_division_that_rounds_up_keeps_its_parentheses():
    script = """import tensorflow as tf
for u in range(len(x) // (batch_size * accumulation_steps)):
    for i in range(accumulation_steps):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True)) / accumulation_steps
        g = tape.gradient(loss, model.trainable_variables)
        acc = [a + b for a, b in zip(acc, g)]
    opt.apply_gradients(zip(acc, model.trainable_variables))
"""
    (finding,) = [one for one in lint_text(script) if one.code == "AB704"]
    assert finding.fix.startswith("for u in range(-(-len(x) // (batch_size * accumulation_steps))):")
