"use strict";
(() => {
  const buttons = [...document.querySelectorAll("[data-show]")];
  const show = (severity) => {
    for (const one of document.querySelectorAll("[data-severity]"))
      one.hidden = severity !== "all" && one.dataset.severity !== severity;
    for (const one of buttons) one.setAttribute("aria-pressed", String(one.dataset.show === severity));
  };
  for (const one of buttons)
    one.addEventListener("click", () => { show(one.dataset.show); history.replaceState(null, "", "#" + one.dataset.show); });
  // a link can open the page with one severity alone
  const asked = location.hash.slice(1);
  if (buttons.some((one) => one.dataset.show === asked)) show(asked);

  const copied = (text) => {
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
    // a page opened from a file has no clipboard of its own everywhere
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    return Promise.resolve();
  };
  for (const one of document.querySelectorAll(".copy"))
    one.addEventListener("click", async () => {
      await copied(one.parentElement.querySelector("pre").textContent);
      one.textContent = "copied";
      setTimeout(() => { one.textContent = "copy"; }, 1500);
    });

  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const draw = () => {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim(), line = style.getPropertyValue("--line").trim();
    figures.forEach((figure, at) => {
      const axis = { gridcolor: line, zerolinecolor: line, linecolor: line };
      const shapes = (figure.layout.shapes || []).map((one) => ({ ...one, line: { color: ink, ...one.line } }));
      const layout = {
        ...figure.layout, shapes, margin: { t: 8, r: 8, b: 40, l: 48 }, font: { color: ink, size: 12 },
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", legend: { orientation: "h", y: -0.25 },
        xaxis: { ...axis, ...figure.layout.xaxis }, yaxis: { ...axis, ...figure.layout.yaxis },
      };
      Plotly.react("plot-" + at, figure.data, layout, { responsive: true, displaylogo: false, displayModeBar: false });
    });
  };
  if (figures.length) { draw(); dark.addEventListener("change", draw); }
})();
