"""The page of a diagnosis: whole, escaped, and drawn by a real browser where there is one."""

import os
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest

import anybatch as ab
from anybatch.doctor import Sweep, diagnose
from anybatch.doctor.measure import Asked, TrainingFacts
from anybatch.doctor.report.plots import plots
from anybatch.doctor.report.training_plots import training_plots
from anybatch.doctor.sweep import MemoryTrial, Trial
from anybatch.train.plan_alternatives import Alternative
from anybatch.train.plan_measured import MeasuredPlan
from anybatch.train.plan_uses import Use
from tests.doctor.data_sets import FAULTS, pictures

ASKED = Asked(batch_size=256)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>`\"'{{ 7 * 7 }}"

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")


def page_of(folder, name="sorted_by_label", **asked):
    plan = FAULTS[name].plant(pictures())
    diagnose(plan.write(folder), **{**plan.asked, **asked}).to_html(folder / "report.html")
    return folder / "report.html"


MIB = 1 << 20
PLAN = MeasuredPlan(
    256,
    64,
    4,
    420 * MIB,
    512 * MIB,
    uses=(Use("process before", 300 * MIB, "measured"), Use("weights", 120 * MIB, "counted")),
    alternatives=(
        Alternative("8 parts of 32", 360 * MIB, "the same update in more steps"),
        Alternative("16 parts of 16", 330 * MIB, "the same update in more steps"),
        Alternative("mixed precision", 380 * MIB, "other rounding"),
    ),
    measured=((32, 355 * MIB), (64, 418 * MIB)),
)
TRIED = TrainingFacts(
    noise_scale=900.0, input_seconds=0.02, forward_seconds=0.01, slowest_stage="map", plan=PLAN
)


def page_with_a_model(folder):
    """The page of a trained model, out of plain values: no framework is asked."""
    plan = FAULTS["a_buffer_that_is_too_small"].plant(pictures())
    found = diagnose(plan.write(folder), **plan.asked)
    replace(found, facts=replace(found.facts, training=TRIED)).to_html(folder / "report.html")
    return folder / "report.html"


def page_of_a_sweep(folder):
    trials = (
        Trial(32, 8, 900.0, MIB, 0.5, 0.6, 120.0),
        Trial(64, 4, 1800.0, 2 * MIB, float("nan"), float("nan"), 90.0),
    )
    ways = ("anybatch", "tf.data, shuffle(10_000)", "arrays in memory")
    memory = tuple(MemoryTrial(way, samples, samples * 1024) for way in ways for samples in (100, 800))
    Sweep(trials, samples=256, memory=memory).to_html(folder / "sweep.html")
    return folder / "sweep.html"


def test_the_limit_is_drawn_whatever_else_is_there():
    for plan in (PLAN, replace(PLAN, alternatives=())):
        drawn = [one for one in training_plots(replace(TRIED, plan=plan), ASKED) if "memory" in one.name]
        assert drawn
        for plot in drawn:
            (line,) = plot.layout["shapes"]
            assert line["y0"] == line["y1"] == 512
            assert line["label"]["text"] == "limit 512 MiB"


def test_the_peak_is_drawn_by_the_size_of_a_part_with_what_was_measured_and_the_plan_marked():
    (plot,) = [one for one in training_plots(TRIED, ASKED) if one.name == "memory by part"]
    line, points, mark = plot.data
    assert (line["x"], line["y"]) == ([16, 32, 64], [330, 360, 420])
    assert (points["x"], points["y"], points["mode"]) == ([32, 64], [355, 418], "markers")
    assert (mark["x"], mark["y"], mark["name"]) == ([64], [420], "this plan, 64")


@pytest.mark.parametrize("buffer", [None, 100, 10**6])
def test_the_users_own_buffer_is_marked_among_the_others(tmp_path, buffer):
    plan = FAULTS["sorted_by_label"].plant(pictures())
    found = diagnose(plan.write(tmp_path), **{**plan.asked, "shuffle_buffer": buffer})
    (plot,) = [one for one in plots(found.facts, found.asked) if "buffer" in one.name]
    marks = [(one["name"], one["x"]) for one in plot.data if one["mode"] == "markers"]
    assert marks == ([] if buffer is None else [(f"your buffer, {buffer:,}", [buffer])])


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


DRAWN = re.compile(r'class="plot js-plotly-plot".*<g class="(?:points|lines|fills)"><(?:g|path)', re.DOTALL)
"""A plot with lines, marks or bars in it."""

needs_a_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium here: apt-get install chromium")


PAGES = {
    "data alone": (page_of, {"class mix along the files", "what a shuffle buffer repairs", "record sizes"}),
    "with a model": (
        page_with_a_model,
        {
            "memory",
            "memory by part",
            "gradient noise",
            "input against model",
            "what a shuffle buffer repairs",
        },
    ),
    "a sweep": (
        page_of_a_sweep,
        {"loss", "samples per second", "gradient noise scale", "memory against data size"},
    ),
}


@needs_a_browser
@pytest.mark.parametrize("name", PAGES)
def test_a_browser_draws_every_plot_and_complains_about_nothing(name, tmp_path):
    made, wanted = PAGES[name]
    document, complaints = browsed(made(tmp_path))
    assert not complaints
    figures = re.findall(r"<figure>.*?</figure>", document, re.DOTALL)
    drawn = {re.search(r"<h2>(.*?)</h2>", one)[1] for one in figures if DRAWN.search(one)}
    assert wanted <= drawn
    assert len(drawn) == len(figures) == len(re.findall(r'id="plot-\d+"', document))


@needs_a_browser
def test_a_browser_draws_the_limit(tmp_path):
    document, _ = browsed(page_with_a_model(tmp_path))
    assert len(re.findall(r">limit 512 MiB</t", document)) == 2


CLICKED = """<script>
const asked = document.querySelector("[data-show=SEVERITY]").getBoundingClientRect();
// whatever lies on top there is what a person would hit
document.elementFromPoint(asked.x + asked.width / 2, asked.y + asked.height / 2).click();
</script>"""


@needs_a_browser
@pytest.mark.parametrize(
    ("severity", "shown"), [("error", {"error"}), ("warning", {"warning"}), ("all", {"error", "warning"})]
)
def test_a_click_on_one_severity_shows_that_alone(severity, shown, tmp_path):
    page = page_of(tmp_path, "a_buffer_that_is_too_small")
    page.write_text(page.read_text() + CLICKED.replace("SEVERITY", severity))
    # from another one, so that the click has something to change
    document, complaints = browsed(page, at="#error" if severity == "warning" else "#warning")
    assert not complaints
    articles = re.findall(r'<article class="finding (\w+)"[^>]*?( hidden="")?>', document)
    assert {one for one, hidden in articles if not hidden} == shown
    assert {one for one, hidden in articles if hidden} == {"error", "warning"} - shown
    assert re.findall(r'data-show="(\w+)" aria-pressed="true"', document) == [severity]


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
