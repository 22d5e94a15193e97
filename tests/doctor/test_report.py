"""The page of a diagnosis: whole, escaped, and drawn by a real browser where there is one."""

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

import anybatch as ab
from anybatch.doctor import diagnose
from tests.doctor.data_sets import FAULTS, pictures

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>`\"'{{ 7 * 7 }}"

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")


def page_of(folder, name="sorted_by_label", **asked):
    plan = FAULTS[name].plant(pictures())
    diagnose(plan.write(folder), **{**plan.asked, **asked}).to_html(folder / "report.html")
    return folder / "report.html"


class Elements(HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data):
        self.words.append(data)


def test_the_page_asks_for_nothing_outside_itself(tmp_path):
    elements = Elements(page_of(tmp_path).read_text())
    assert not [one for one in elements.attributes if one[1] in {"src", "href", "srcset", "action"}]
    assert "link" not in elements.tags
    assert any("default-src 'none'" in (value or "") for _, _, value in elements.attributes)


def test_the_page_says_every_finding_with_its_fix(tmp_path):
    plan = FAULTS["a_buffer_that_is_too_small"].plant(pictures())
    found = diagnose(plan.write(tmp_path), **plan.asked)
    found.to_html(tmp_path / "report.html")
    words = "".join(Elements((tmp_path / "report.html").read_text()).words)
    for finding in found.findings:
        assert finding.code in words
        assert finding.fix in words
    assert found.verdict in words


def test_hostile_names_do_no_harm(tmp_path):
    records = [{HOSTILE: [float(at)], "label": HOSTILE.encode() + b"%d" % (at // 50)} for at in range(300)]
    records[7][HOSTILE] = [float("nan")]
    paths = ab.write(tmp_path / "a.tfrecord", records)
    diagnose(paths).to_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    elements = Elements(text)
    assert "img" not in elements.tags
    assert elements.tags.count("script") == 3
    assert "alert(1)</script>" not in text
    assert "{{ 7 * 7 }}" in "".join(elements.words)


def browsed(page, *, at="", size="1200,1500"):
    """The page as the browser has it in the end, and what it complained about."""
    run = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--window-size={size}",
            "--virtual-time-budget=5000",
            "--enable-logging=stderr",
            "--dump-dom",
            f"{page.as_uri()}{at}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return run.stdout, [line for line in run.stderr.splitlines() if ":CONSOLE" in line]


needs_a_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium here: apt-get install chromium")


@needs_a_browser
def test_a_browser_draws_every_plot_and_complains_about_nothing(tmp_path):
    document, complaints = browsed(page_of(tmp_path))
    assert not complaints
    assert document.count('class="plot js-plotly-plot"') == len(re.findall(r'id="plot-\d+"', document)) > 3
    assert document.count("<svg") >= 5


@needs_a_browser
def test_a_link_to_one_severity_shows_that_alone(tmp_path):
    page = page_of(tmp_path, "a_buffer_that_is_too_small")
    shown = re.findall(r'<article class="finding (\w+)"[^>]*?( hidden="")?>', browsed(page, at="#warning")[0])
    assert {severity for severity, hidden in shown if not hidden} == {"warning"}
    assert {severity for severity, hidden in shown if hidden} == {"error"}


@needs_a_browser
def test_hostile_names_run_nothing_in_a_browser(tmp_path):
    records = [{HOSTILE: [float(at)], "label": HOSTILE.encode() + b"%d" % (at // 50)} for at in range(300)]
    paths = ab.write(tmp_path / "a.tfrecord", records)
    diagnose(paths).to_html(tmp_path / "report.html")
    document, complaints = browsed(tmp_path / "report.html")
    assert not complaints
    assert not re.search(r"<img[^>]*onerror", document.split('<script type="application/json"')[0])


def test_a_file_name_that_is_no_text_leaves_a_whole_page(tmp_path):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.tfrecord")
    ab.write(odd, [{"x": n / 7, "label": n % 2} for n in range(50)])
    (tmp_path / "report.html").write_text("an older page")
    diagnose(odd).to_html(tmp_path / "report.html")
    assert "</html>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_page_that_cannot_be_made_leaves_the_older_one(tmp_path, monkeypatch):
    found = diagnose(pictures().write(tmp_path / "data"))
    (tmp_path / "report.html").write_text("an older page")
    monkeypatch.setattr("anybatch.handover.disk.DISK.rename", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        found.to_html(tmp_path / "report.html")
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "an older page"
