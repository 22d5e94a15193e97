"""Images are those of TensorFlow: exactly where nothing is resized, within a stated tolerance elsewhere."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import anybatch as ab
from anybatch.errors import BadFeature, CorruptRecord, DoesNotFit, FeatureError
from tests.records.images import photo, pixels_of, shard_of
from tests.shard_files import starts_of

CORPUS = Path(__file__).parents[2] / "rust/core/tests/corpus/image"
UNSOUND = ("cut", "claims", "beyond", "without")
SOUND = sorted(
    file.name
    for file in CORPUS.iterdir()
    if file.name.startswith(("jpeg", "png")) and not any(why in file.name for why in UNSOUND)
)


def jpeg(pixels, **how):
    return tf.io.encode_jpeg(pixels, **how).numpy()


def png(pixels):
    return tf.io.encode_png(pixels).numpy()


def by_tensorflow(file, channels):
    """Decode without resizing, with the arithmetic that does not trade accuracy for speed."""
    if file.startswith(b"\xff\xd8"):
        return tf.io.decode_jpeg(file, channels, dct_method="INTEGER_ACCURATE").numpy()
    return tf.io.decode_png(file, channels).numpy()


def resized_by_tensorflow(file, height, width):
    resized = tf.image.resize(by_tensorflow(file, 3), (height, width), method="bilinear", antialias=True)
    return resized.numpy()


def decoded(folder, file, height, width, channels=3):
    return pixels_of(shard_of(folder / "one.tfrecord", [file]), ab.Image(height, width, channels))[0]


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("chroma_downsampling", [False, True])
@pytest.mark.parametrize(("height", "width"), [(8, 8), (33, 47), (130, 65), (3, 2), (1, 90)])
def test_a_jpeg_of_the_wanted_size_has_tensorflows_pixels(
    tmp_path, height, width, chroma_downsampling, progressive
):
    for quality in (30, 90, 100):
        file = jpeg(
            photo(height, width),
            quality=quality,
            chroma_downsampling=chroma_downsampling,
            progressive=progressive,
        )
        np.testing.assert_array_equal(decoded(tmp_path, file, height, width), by_tensorflow(file, 3))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_png_of_the_wanted_size_has_tensorflows_pixels(tmp_path, dtype, channels):
    largest = np.iinfo(dtype).max
    pixels = np.random.default_rng(1).integers(0, largest, (20, 31, channels), dtype, endpoint=True)
    for wanted in (3, 4):
        ours = decoded(tmp_path, png(pixels), 20, 31, wanted)
        np.testing.assert_array_equal(ours, by_tensorflow(png(pixels), wanted))


@pytest.mark.parametrize("name", SOUND)
def test_every_kind_of_file_has_tensorflows_pixels(tmp_path, name):
    file = (CORPUS / name).read_bytes()
    theirs = by_tensorflow(file, 3)
    np.testing.assert_array_equal(decoded(tmp_path, file, *theirs.shape[:2]), theirs)


@pytest.mark.parametrize("progressive", [False, True])
def test_a_grey_jpeg_is_the_luminance_that_tensorflow_gives(tmp_path, progressive):
    file = jpeg(photo(40, 56), progressive=progressive)
    np.testing.assert_array_equal(decoded(tmp_path, file, 40, 56, channels=1), by_tensorflow(file, 1))


@pytest.mark.parametrize(("height", "width"), [(32, 32), (120, 40), (224, 300), (500, 33)])
def test_what_is_resized_is_within_one_of_tensorflow(tmp_path, height, width):
    file = png(photo(120, 180))
    ours, theirs = decoded(tmp_path, file, height, width), resized_by_tensorflow(file, height, width)
    assert np.abs(ours - theirs).max() <= 1


@pytest.mark.parametrize("side", [512, 700, 1100, 2000])
def test_a_jpeg_made_smaller_on_the_way_is_within_the_stated_tolerance_of_tensorflow(tmp_path, side):
    file = jpeg(photo(side, side), quality=90)
    difference = np.abs(decoded(tmp_path, file, 224, 224) - resized_by_tensorflow(file, 224, 224))
    assert difference.mean() <= 2.5
    assert np.percentile(difference, 99) <= 9


def starts_in(path):
    return starts_of(list(tf.compat.v1.io.tf_record_iterator(path)))


def test_damaged_images_are_damaged_records(tmp_path):
    files = [jpeg(photo(30, 40, seed=seed)) for seed in range(6)]
    broken = {1: files[1][:-200], 3: b"", 4: b"GIF89a and no more"}
    path = shard_of(tmp_path / "some.tfrecord", [broken.get(n, file) for n, file in enumerate(files)])
    features = {"image": ab.Image(30, 40), "number": ab.Numbers("int64")}

    with pytest.raises(CorruptRecord) as raised:
        list(ab.read(path, features).batch(2))
    assert (raised.value.file, raised.value.offset) == (path, starts_in(path)[1])

    stream = ab.read(path, features, on_corrupt="skip").batch(2)
    batches = list(stream)
    assert np.concatenate([batch["number"] for batch in batches]).tolist() == [0, 2, 5]
    kept = np.concatenate([batch["image"] for batch in batches])
    np.testing.assert_array_equal(kept, [by_tensorflow(files[number], 3) for number in (0, 2, 5)])
    assert [(file, offset) for file, offset, _, _ in stream.corrupt] == [
        (path, starts_in(path)[number]) for number in broken
    ]
    reasons = [reason for *_, reason in stream.corrupt]
    assert "JPEG: its data ends" in reasons[0]
    assert "empty" in reasons[1]
    assert "a GIF" in reasons[2]


def test_too_many_damaged_images_are_an_error(tmp_path):
    path = shard_of(tmp_path / "some.tfrecord", [jpeg(photo(9, 9)), b"", b"", b""])
    with pytest.raises(Exception, match="3") as raised:
        list(ab.read(path, {"image": ab.Image(9, 9)}, on_corrupt="skip", max_corrupt=2).batch(1))
    assert type(raised.value).__module__ == "anybatch.errors"


@pytest.mark.parametrize(
    ("record", "problem"),
    [({"other": 1}, "missing"), ({"image": 7}, "int64"), ({"image": [b"a", b"b"]}, "2 bytes values")],
)
def test_a_record_without_one_image_is_the_features_error(tmp_path, record, problem):
    ab.write(tmp_path / "one.tfrecord", [record])
    with pytest.raises(FeatureError, match=problem):
        pixels_of(str(tmp_path / "one.tfrecord"), ab.Image(8, 8))


@pytest.mark.parametrize(
    "shape", [(0, 5), (5, 5, 2), (5, 5, 5), (-1, 5), (None, 5), ("a", 5), (2**16, 2**16)]
)
def test_impossible_shapes_are_refused(shape):
    with pytest.raises(BadFeature):
        ab.Image(*shape)


def test_the_feature_is_a_value():
    feature = ab.Image(224, 200, channels=1)
    assert feature == pickle.loads(pickle.dumps(feature)) == ab.Image(224, 200, 1) != ab.Image(224, 200)
    assert (feature.shape, repr(feature)) == ((224, 200, 1), "Image(height=224, width=200, channels=1)")


def test_shuffled_threads_and_restored_streams_give_the_same_images(tmp_path):
    files = [jpeg(photo(50, 70, seed=seed)) if seed % 2 else png(photo(70, 50)) for seed in range(20)]
    path = shard_of(tmp_path / "some.tfrecord", files)
    stream = ab.read(path, {"image": ab.Image(32, 32)}).shuffle(seed=3).batch(3)
    whole = [batch["image"] for batch in stream]
    again = iter(stream)
    for _ in range(2):
        next(again)
    restored = iter(stream)
    restored.set_state(again.get_state())
    np.testing.assert_array_equal(
        np.concatenate(whole[2:]), np.concatenate([one["image"] for one in restored])
    )


def test_an_image_too_large_for_the_limit_is_refused_with_the_limit_that_would_do(tmp_path):
    path = shard_of(tmp_path / "large.tfrecord", [png(np.zeros((3000, 3000, 3), np.uint8))])
    stream = ab.read(path, {"image": ab.Image(32, 32)}).batch(1)
    with pytest.raises(DoesNotFit, match="3000 x 3000 pixels") as raised:
        list(stream.limit_memory("64MiB"))
    needed_by_reading = raised.value.args[1]
    # reading has a part of the limit only
    assert len(list(stream.limit_memory(2 * needed_by_reading))) == 1


def test_tensorflow_is_told_the_shape(tmp_path):
    path = shard_of(tmp_path / "one.tfrecord", [png(photo(9, 9))])
    dataset = ab.read(path, {"image": ab.Image(4, 5)}).batch(2).to_tf()
    assert dataset.element_spec["image"] == tf.TensorSpec((None, 4, 5, 3), tf.uint8)
