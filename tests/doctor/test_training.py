"""With a model and a stream of batches, what would happen in training is found before it starts."""

import time

import numpy as np
import pytest

import anybatch as ab
from anybatch.doctor import diagnose
from anybatch.doctor.checks.batch import does_not_fit_whole
from anybatch.doctor.checks.training import input_too_slow, noisy
from anybatch.doctor.measure import Asked, Facts, SampleFacts, TrainingFacts
from anybatch.memory import allowance
from anybatch.records import Sizes
from anybatch.train import Plan
from tests.doctor.data_sets import pictures

FEATURES = {"x": ab.Numbers("float32", (4,)), "label": ab.Numbers("int64")}


@pytest.fixture(scope="module")
def keras():
    import keras

    return keras


def model_of(keras, inputs, outputs=10):
    model = keras.Sequential(
        [keras.Input((inputs,)), keras.layers.BatchNormalization(), keras.layers.Dense(outputs)]
    )
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def stream_of(paths):
    return ab.read(paths, FEATURES).shuffle(seed=1).batch(60)


def codes(found):
    return {finding.code: str(finding.severity) for finding in found.findings}


def test_a_model_that_fits_the_data_raises_nothing_above_a_note(keras, tmp_path):
    data = stream_of(pictures().write(tmp_path)).as_supervised("x", "label")
    found = diagnose(data, model=model_of(keras, 4))
    assert [one for one in found.findings if one.severity != "note"] == []


def test_a_batch_that_does_not_pass_is_found_before_the_first_step(keras, tmp_path):
    data = stream_of(pictures().write(tmp_path)).as_supervised("x", "label")
    found = diagnose(data, model=model_of(keras, 7))
    assert codes(found)["AB505"] == "error"
    assert codes(found)["AB501"] == "error"


def test_trying_a_model_leaves_its_weights_as_they_were(keras, tmp_path):
    data = stream_of(pictures().write(tmp_path)).as_supervised("x", "label")
    model = model_of(keras, 4)
    before = model.get_weights()
    diagnose(data, model=model)
    assert all(np.array_equal(one, other) for one, other in zip(before, model.get_weights(), strict=True))


@pytest.mark.soak
def test_a_slow_map_is_named_as_what_holds_the_model_back(keras, tmp_path):
    def slow(batch):
        time.sleep(1)
        return batch

    data = stream_of(pictures(count=120).write(tmp_path)).map(slow).as_supervised("x", "label")
    (finding,) = [one for one in diagnose(data, model=model_of(keras, 4)).findings if one.code == "AB506"]
    assert "map" in finding.evidence


def centred(columns):
    return {**columns, "x": columns["x"] - columns["x"].mean(axis=0)}


def doubled(columns):
    return {**columns, "x": columns["x"] * 2}


def jittered(columns):
    return {**columns, "x": columns["x"] + np.random.default_rng().normal(size=columns["x"].shape)}


def test_a_map_that_depends_on_batch_mates_is_named_and_others_are_not(keras, tmp_path):
    read = ab.read(pictures().write(tmp_path), FEATURES)
    promised = read.map(doubled, batched=True).map(centred, batched=True).batch(60)
    (found,) = findings_of(promised, keras, "AB507")
    assert (str(found.severity), "map(centred, batched=True)" in found.evidence) == ("warning", True)
    (found,) = findings_of(read.batch(60).map(centred), keras, "AB507")
    assert str(found.severity) == "note"
    sound = read.map(doubled, batched=True).batch(60).map(doubled).map(jittered)
    assert findings_of(sound, keras, "AB507") == []


def test_a_function_that_keeps_what_it_was_given_is_memory_that_grows(keras, tmp_path):
    kept = []

    def keeping(batch):
        kept.append(np.ones(1 << 17))
        return batch

    read = ab.read(pictures().write(tmp_path), FEATURES).batch(60)
    (found,) = findings_of(read.map(keeping), keras, "AB508")
    assert " MiB more per step" in found.evidence
    assert findings_of(read.map(lambda batch: batch), keras, "AB508") == []


def findings_of(stream, keras, code):
    found = diagnose(stream.as_supervised("x", "label"), model=model_of(keras, 4))
    return [one for one in found.findings if one.code == code]


def test_the_plan_is_told_where_memory_is_named(keras, tmp_path):
    data = stream_of(pictures().write(tmp_path)).as_supervised("x", "label")
    found = diagnose(data, model=model_of(keras, 4), memory="8GiB")
    assert found.document()["plan"]["batch_size"] == 60
    assert "AB408" not in codes(found)
    found.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert str(found.facts.training.plan).splitlines()[0] in page
    assert "<h2>memory</h2>" in page
    assert "<h2>gradient noise</h2>" in page
    assert "<h2>input against model</h2>" in page


@pytest.mark.parametrize(
    ("tried", "severity"),
    [
        ({"plan": Plan(512, 128, 4)}, "warning"),
        ({"no_plan": "one record needs 3 GiB"}, "error"),
        ({"plan": Plan(512, 512, 1)}, None),
        ({}, None),
    ],
)
def test_a_batch_that_has_to_be_split_is_told_with_its_plan(tried, severity):
    found = list(does_not_fit_whole(facts_of(**tried), Asked(memory_bytes=1 << 30)))
    assert [one.severity for one in found] == ([severity] if severity else [])
    # what was too little is not proposed again
    assert all(("memory=" in one.fix) == (severity == "warning") for one in found)


def facts_of(**tried):
    sample = SampleFacts(np.arange(3))
    return Facts(
        "train/*", (), everything=True, sizes=Sizes(), sample=sample, training=TrainingFacts(**tried)
    )


@pytest.mark.parametrize(("batch", "told"), [(8, "small"), (100, None), (4000, None), (100_000, "large")])
def test_the_noise_scale_judges_the_batch(batch, told):
    found = list(noisy(facts_of(noise_scale=1000.0), Asked(batch_size=batch)))
    assert [told in one.what for one in found] == ([True] if told else [])


@pytest.mark.parametrize(("input_seconds", "told"), [(0.01, False), (0.029, False), (0.031, True), (5, True)])
def test_an_input_slower_than_a_step_is_told(input_seconds, told):
    facts = facts_of(input_seconds=input_seconds, forward_seconds=0.01)
    assert bool(list(input_too_slow(facts, Asked()))) == told


def test_trying_a_model_leaves_its_seeds_as_they_were(keras, tmp_path):
    data = stream_of(pictures().write(tmp_path)).as_supervised("x", "label")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dropout(0.5), keras.layers.Dense(10)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before = [one.numpy().copy() for one in model.variables]
    assert diagnose(data, model=model).facts.training.forward_seconds > 0
    assert all(np.array_equal(a, b.numpy()) for a, b in zip(before, model.variables, strict=True))


def small_model(keras, inputs, outputs=2):
    model = keras.Sequential([keras.Input(inputs), keras.layers.Flatten(), keras.layers.Dense(outputs)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def test_what_a_stream_makes_of_records_is_what_the_model_is_compared_with(keras, tmp_path):
    read = ab.read(pictures().write(tmp_path), FEATURES).shuffle(seed=1)
    halved = read.map(lambda one: {**one, "label": one["label"] % 2}, batched=True).batch(60)
    assert not set(codes(diagnose(halved.as_supervised("x", "label"), model=small_model(keras, (4,))))) & {
        "AB207",
        "AB503",
    }
    tiled = read.map(lambda one: {**one, "x": np.tile(one["x"], (1, 5))}, batched=True).batch(60)
    found = diagnose(tiled.as_supervised("x", "label"), model=small_model(keras, (20,), 10))
    assert set(codes(found).values()) <= {"note"}
    thirds = read.map(lambda one: {**one, "label": one["label"] % 3}, batched=True).batch(60)
    found = diagnose(thirds.as_supervised("x", "label"), model=small_model(keras, (4,)))
    assert codes(found)["AB207"] == codes(found)["AB503"] == "error"


def test_the_length_of_encoded_images_says_nothing_about_their_shape(keras, tmp_path):
    tf = pytest.importorskip("tensorflow")
    rng = np.random.default_rng(0)
    records = [
        {
            "image": tf.io.encode_jpeg(rng.integers(0, 255, (16, 16, 3)).astype("uint8")).numpy(),
            "label": n % 2,
        }
        for n in range(100)
    ]
    paths = ab.write(tmp_path / "a.tfrecord", records)
    model = small_model(keras, (16, 16, 3))
    assert "AB501" not in codes(diagnose(paths, model=model))
    data = ab.read(paths, {"image": ab.Image(16, 16), "label": ab.Numbers("int64")}).batch(50)
    assert not set(codes(diagnose(data.as_supervised("image", "label"), model=model))) & {"AB501", "AB505"}


def test_several_inputs_and_several_outputs_are_tried_as_one_is(keras, tmp_path):
    data = stream_of(pictures().write(tmp_path))
    one, other = keras.Input((4,)), keras.Input((4,))
    both = keras.Model([one, other], keras.layers.Dense(1)(keras.layers.Concatenate()([one, other])))
    both.compile("sgd", "mse")
    tried = diagnose(data.as_supervised(["x", "x"], "label"), model=both).facts.training
    assert (tried.problem, tried.x_shapes) == ("", ((4,), (4,)))
    x = keras.Input((4,))
    heads = keras.Model(x, {name: keras.layers.Dense(1, name=name)(x) for name in "ab"})
    heads.compile("sgd", {"a": "mse", "b": "mse"})
    tried = diagnose(data.as_supervised("x", {"a": "label", "b": "label"}), model=heads).facts.training
    assert tried.problem == ""
    assert tried.forward_seconds > 0


def classifier(keras, *layers):
    model = keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dense(10)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def own_layers(keras):
    class Normalised(keras.layers.BatchNormalization):
        pass

    class Centred(keras.layers.Layer):
        def call(self, x):
            return x - keras.ops.mean(x, axis=0)

    return {
        "Normalised": Normalised,
        "Centred": Centred,
        "Dense": lambda name: keras.layers.Dense(3, name=name),
    }


@pytest.mark.parametrize(
    ("layer", "told"),
    [("Normalised", "`own` normalises by part"), ("Centred", "a layer mixes them"), ("Dense", None)],
)
def test_layers_of_a_users_own_that_mix_records_are_told(keras, tmp_path, layer, told):
    data = stream_of(pictures().write(tmp_path)).as_supervised("x", "label")
    model = classifier(keras, own_layers(keras)[layer](name="own"))
    found = [one for one in diagnose(data, model=model).findings if one.code == "AB502"]
    assert [str(one.severity) for one in found] == (["note"] if told else [])
    assert all(told in one.evidence for one in found)


def test_what_a_subclass_does_is_told_of_a_model_that_was_not_tried_too(keras, tmp_path):
    model = keras.Sequential([keras.Input((7,)), own_layers(keras)["Normalised"](name="own")])
    model.compile("sgd", "mse")
    found = diagnose(pictures(count=601).write(tmp_path), model=model, batch_size=100)
    assert codes(found)["AB502"] == "note"
    assert codes(found)["AB403"] == "warning"


def test_a_model_that_runs_whole_batches_only_is_told_with_the_reason(keras, tmp_path):
    class Own(keras.Model):
        def train_step(self, data):
            return super().train_step(data)

    x = keras.Input((4,))
    model = Own(x, keras.layers.Dense(10)(x))
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = stream_of(pictures().write(tmp_path)).as_supervised("x", "label")
    (found,) = [one for one in diagnose(data, model=model).findings if one.code == "AB502"]
    assert "Own.train_step cannot be split" in found.evidence


def test_an_optimizer_that_accumulates_by_itself_is_no_exception(keras, tmp_path):
    model = classifier(keras)
    model.compile(keras.optimizers.SGD(gradient_accumulation_steps=2), model.loss)
    data = stream_of(pictures().write(tmp_path)).as_supervised("x", "label")
    found = diagnose(data, model=model)
    assert found.facts.training.plan is None
    assert "gradient_accumulation_steps=2" in found.facts.training.unsplit


def test_without_a_memory_the_plan_is_under_what_the_machine_allows(keras, tmp_path):
    data = stream_of(pictures().write(tmp_path)).as_supervised("x", "label")
    found = diagnose(data, model=model_of(keras, 4))
    assert found.asked.memory_bytes == pytest.approx(allowance().limit_bytes, rel=0.2)
    assert found.document()["plan"]["batch_size"] == 60
    assert diagnose(data).asked.memory_bytes is None


def test_a_batch_size_of_its_own_replaces_that_of_the_stream(keras, tmp_path):
    data = stream_of(pictures().write(tmp_path)).as_supervised("x", "label")
    found = diagnose(data, model=model_of(keras, 4), memory="8GiB", batch_size=200)
    assert found.document()["plan"]["batch_size"] == 200


def test_files_alone_are_tried_where_it_is_clear_what_the_model_takes(keras, tmp_path):
    paths = pictures().write(tmp_path)
    assert diagnose(paths, model=model_of(keras, 4)).facts.training.problem == ""
    unclear = diagnose(paths, model=model_of(keras, 7))
    assert unclear.facts.training is None
    assert "the model was not tried: it is not clear which features it takes" in unclear.looked_at
    assert "(x, y)" in diagnose(stream_of(paths), model=model_of(keras, 4)).looked_at
