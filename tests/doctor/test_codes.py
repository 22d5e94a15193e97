"""Every code has a page, every page a code, and every code can be found."""

import re
from pathlib import Path

import pytest

from anybatch.doctor.codes import CODES

ROOT = Path(__file__).parents[2]
PAGES = {page.stem: page for page in (ROOT / "docs" / "codes").glob("AB*.md")}
SOURCES = "".join(path.read_text() for path in (ROOT / "src" / "anybatch" / "doctor").rglob("*.py"))


def test_every_code_has_a_page_and_every_page_a_code():
    assert set(PAGES) == set(CODES)


@pytest.mark.parametrize("code", CODES)
def test_a_page_says_what_the_code_means_its_evidence_and_the_fix(code):
    text = PAGES[code].read_text()
    assert text.startswith(f"# {code}: {CODES[code].title}\n")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    assert parts[1::2] == ["What it means", "Evidence", "Fix"]
    assert all(len(part.strip()) > 8 for part in parts[2::2])
    assert "```" in parts[-1]


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_found_by_some_check(code):
    assert len(re.findall(rf'"{code}"', SOURCES)) >= 2


def test_the_list_of_codes_names_every_page():
    listed = re.findall(r"\[(AB\d+)\]\((AB\d+)\.md\)", (ROOT / "docs" / "codes" / "README.md").read_text())
    assert [one for one, _ in listed] == list(CODES)
    assert all(one == other for one, other in listed)


def test_the_table_of_the_articles_names_only_codes_that_exist():
    named = set(re.findall(r"AB\d+", (ROOT / "docs" / "articles.md").read_text()))
    assert named <= set(CODES)
    assert len(named) > 30
