"""A diagnosis as one page: no network, light and dark, on a phone and on paper."""

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from anybatch.doctor.report.plots import Plot, plots

if TYPE_CHECKING:
    from anybatch.doctor.diagnosis import Diagnosis

__all__ = ["page", "rendered"]


def page(diagnosis: "Diagnosis") -> str:
    """Return the whole page."""
    from anybatch.doctor.report.training_plots import training_plots

    facts, asked = diagnosis.facts, diagnosis.asked
    tried = facts.training
    return rendered(
        title=f"anybatch doctor: {facts.paths}",
        verdict=diagnosis.verdict,
        looked_at=diagnosis.looked_at,
        findings=diagnosis.findings,
        table=None,
        plan="" if tried is None or tried.plan is None else str(tried.plan),
        plots=[*plots(facts, asked), *(training_plots(tried, asked) if tried else ())],
        shards=facts.shards,
        document=diagnosis.to_json(),
    )


def rendered(*, plots: list[Plot], **told: Any) -> str:
    """Return a page with these plots and whatever else the template is told, everything escaped."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["told"] = told_in_html
    template = environment.from_string(_text("page.html.jinja"))
    return template.render(
        style=_text("page.css"),
        script=_text("page.js"),
        plotly=_text("package_data/plotly.min.js", of="plotly") if plots else "",
        plots=plots,
        figures=_inside_script([{"data": one.data, "layout": one.layout} for one in plots]),
        **told,
    )


def told_in_html(text: str) -> str:
    """Return a sentence as markup: everything in it escaped, what stands between backticks as code.

    >>> print(told_in_html("`<x>` & more"))
    <code>&lt;x&gt;</code> &amp; more
    """
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before


def _text(name: str, *, of: str = "anybatch.doctor.report") -> str:
    return files(of).joinpath(name).read_text(encoding="utf-8")


def _inside_script(value: object) -> str:
    r"""Return JSON that cannot end the script element it stands in.

    >>> print(_inside_script("</script>"))
    "\u003c/script>"
    """
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")
