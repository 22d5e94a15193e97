import copy
import inspect
import pickle

import pytest

from anybatch import errors
from anybatch.errors import AnybatchError

DAMAGE = ("a.tfrecord", 120, 16, "data CRC")
CASES = {
    errors.CorruptRecord: DAMAGE,
    errors.FeatureError: ("label", "a.tfrecord", 120, "has 3 values; 1 were asked for"),
    errors.NotRecords: ("a.txt", "the first 12 bytes are no header"),
    errors.ShardChanged: ("a.tfrecord", "it had 100 bytes and has 50"),
    errors.DoesNotFit: ("batch", 2**30, 2**20, 2**21),
    errors.WindowDoesNotFit: ("shuffle", 2**30, 2**20, 2**21),
    errors.UserFunctionFailed: (
        "map",
        "scale",
        "records 0 to 5",
        "ZeroDivisionError: division by zero; see above",
    ),
    errors.NoFiles: ("train/*.tfrecord",),
    errors.NothingToRead: (("a.tfrecord", "b.tfrecord"),),
    errors.TooManyCorrupt: (11, 10, DAMAGE),
    errors.ShardsDisagree: ("label", "a.tfrecord", "1 int64", "b.tfrecord", "2 float32"),
    errors.WillNotOverwrite: ("a.tfrecord",),
    errors.IsAFolder: ("train",),
    errors.NotExamples: ("a.tfrecord", "3 of 3 records do not parse"),
    errors.BadFeature: ("label", "it holds NoneType; a record can hold numbers", "record 7 for `a.tfrecord`"),
    errors.FolderInTheWay: ("train",),
}

every_error = pytest.mark.parametrize(
    ("kind", "fields"), CASES.items(), ids=lambda case: getattr(case, "__name__", "")
)


def test_every_error_of_the_module_is_tried_here():
    defined = {
        cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, AnybatchError)
    }
    assert defined - {AnybatchError} == set(CASES)


@every_error
@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_an_error_survives_a_process_border_with_its_fields(kind, fields, again):
    error = kind(*fields)
    returned = again(error)
    assert type(returned) is kind
    assert returned.args == error.args == fields
    assert vars(returned) == vars(error)
    assert str(returned) == str(error)


@every_error
def test_the_fields_have_the_names_of_the_arguments(kind, fields):
    names = list(inspect.signature(kind).parameters)
    assert [getattr(kind(*fields), name) for name in names] == list(fields)


@every_error
def test_the_message_is_one_line_with_a_way_out(kind, fields):
    message = str(kind(*fields))
    assert "\n" not in message
    assert "; " in message
    assert len(message) < 300


@every_error
def test_an_ordinary_except_clause_catches_it_too(kind, fields):
    assert issubclass(kind, AnybatchError)
    assert issubclass(kind, ValueError | OSError | MemoryError | RuntimeError)


def test_errors_about_files_carry_no_invented_errno():
    for kind in (errors.ShardChanged, errors.NoFiles, errors.WillNotOverwrite):
        assert kind(*CASES[kind]).errno is None


def test_an_error_about_no_single_record_names_no_place():
    assert "byte" not in str(errors.FeatureError("label", "", -1, "is missing"))


@pytest.mark.parametrize(
    ("allowed", "shown"), [(0, "allows 0,"), (10, "allows 10,"), (0.01, "allows 1.000% of them,")]
)
def test_too_many_corrupt_says_what_was_allowed(allowed, shown):
    assert shown in str(errors.TooManyCorrupt(11, allowed, DAMAGE))
