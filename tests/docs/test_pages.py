"""Every block of every page runs, every name is explained, and no link leads nowhere."""

import inspect
import json
import os
import re
import subprocess
import sys

import pytest

import anybatch as ab
from tests.docs.blocks import DOCS, ROOT, blocks_of, needs_tensorflow, pages


def failures_of(some, tmp_path):
    """Run pages in one process of their own; return what went wrong, page by page."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow", "XDG_CACHE_HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.docs.run_pages", *(str(page.relative_to(ROOT)) for page in some)],
        cwd=ROOT,
        env=os.environ | quiet,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


def told(failures):
    return "\n".join(f"{page}: {trouble}" for page, trouble in failures.items())


def test_the_blocks_of_pages_that_need_no_framework_run(tmp_path):
    some = [page for page in pages() if blocks_of(page) and not needs_tensorflow(page)]
    assert len(some) >= 5
    failures = failures_of(some, tmp_path)
    assert not failures, told(failures)


def training_pages(*, codes):
    """Return the pages that train; there are many more about the doctor's codes than others."""
    some = (page for page in pages() if blocks_of(page) and needs_tensorflow(page))
    return [page for page in some if (page.parent.name == "codes") == codes]


@pytest.mark.long
def test_the_blocks_of_pages_that_train_run(tmp_path):
    some = training_pages(codes=False)
    assert len(some) >= 10
    failures = failures_of(some, tmp_path)
    assert not failures, told(failures)


@pytest.mark.soak
def test_the_blocks_of_pages_about_codes_that_train_run(tmp_path):
    some = training_pages(codes=True)
    assert len(some) >= 30
    failures = failures_of(some, tmp_path)
    assert not failures, told(failures)


@pytest.mark.parametrize("page", [page for page in pages() if blocks_of(page)], ids=lambda page: page.stem)
def test_a_file_that_a_page_lays_out_is_used_further_down(page):
    blocks = blocks_of(page)
    for at, block in enumerate(blocks):
        if block.title is not None:
            assert any(block.title.partition(".")[0] in later.code for later in blocks[at + 1 :])


@pytest.mark.parametrize("name", ab.__all__)
def test_every_public_name_has_a_docstring_with_an_example_and_a_place_in_the_reference(name):
    documented = getattr(ab, name).__doc__ or ""
    assert re.search(r"^\s*>>> ", documented, re.MULTILINE)
    assert re.search(rf"^::: anybatch\.{name}$", (DOCS / "reference.md").read_text(), re.MULTILINE)


def words_of_a_stream():
    """Return what can be said to a stream: all that the class has for its users."""
    return [name for name, _ in inspect.getmembers(ab.Stream) if not name.startswith("_")]


@pytest.mark.parametrize("name", words_of_a_stream())
def test_every_word_of_a_stream_has_an_example(name):
    assert re.search(r"^\s*>>> ", inspect.getdoc(getattr(ab.Stream, name)) or "", re.MULTILINE)


@pytest.mark.parametrize(
    "file", ["README", "ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY", "benchmarks/README"]
)
def test_links_of_the_files_that_are_not_on_the_site_lead_somewhere(file):
    page = ROOT / f"{file}.md"
    text = page.read_text()
    linked = [
        one.partition("#")[0]
        for one in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
        for one in one
    ]
    local = [one for one in linked if one and "://" not in one]
    missing = [one for one in local if not (page.parent / one).exists()]
    assert not missing
