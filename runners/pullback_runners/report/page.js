/* Draws the page's charts in the colours of the day or of the night, and again when that changes. */
(() => {
  "use strict";
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 640px)");
  const drawn = new Set();

  function filled(value, style) {
    if (typeof value === "string") return value.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    if (Array.isArray(value)) return value.map((each) => filled(each, style));
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, filled(v, style)]));
    return value;
  }

  // A phone has no room for names beside the marks: they go above them.
  function fitted({ data, layout }) {
    if (!narrow.matches || layout.yaxis.type === "log") return { data, layout };
    const names = layout.yaxis.ticktext.map((name, place) => ({
      x: 0, xref: "paper", xanchor: "left", y: place - 0.5, yanchor: "top", text: name, showarrow: false, font: { size: 11 },
    }));
    const height = layout.height + 26 * names.length;
    return {
      data: data.map((trace) => ({ ...trace, y: trace.y.map((row) => row + 0.18) })),
      layout: { ...layout, height, annotations: names, yaxis: { ...layout.yaxis, showticklabels: false } },
    };
  }

  function draw(id) {
    const figure = fitted(filled(figures[id], getComputedStyle(document.documentElement)));
    Plotly.react(id, figure.data, figure.layout, { displayModeBar: false, responsive: true });
    drawn.add(id);
  }

  const shapes = {
    circle: "M5.5 1a4.5 4.5 0 1 0 .01 0z", diamond: "M5.5 0L11 5.5 5.5 11 0 5.5z", square: "M1 1h9v9H1z",
    "triangle-up": "M5.5 1L11 10H0z", cross: "M4 0h3v4h4v3H7v4H4V7H0V4h4z", star: "M5.5 0l1.6 3.6 3.9.4-2.9 2.6.8 3.9-3.4-2-3.4 2 .8-3.9L0 4l3.9-.4z",
    hexagon: "M2.7 1h5.6L11 5.5 8.3 10H2.7L0 5.5z", x: "M2 0l3.5 3.5L9 0l2 2-3.5 3.5L11 9l-2 2-3.5-3.5L2 11 0 9l3.5-3.5L0 2z",
  };
  for (const legend of document.querySelectorAll(".legend")) {
    for (const trace of figures[legend.dataset.of].data) {
      const item = document.createElement("span");
      item.innerHTML = `<svg viewBox="0 0 11 11" aria-hidden="true"><path d="${shapes[trace.marker.symbol]}"/></svg>`;
      item.querySelector("path").style.fill = trace.marker.color;
      item.append(trace.name);
      legend.append(item);
    }
  }
  for (const id of ["ratios", "memory"]) if (document.getElementById(id)) draw(id);
  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => { if (details.open) draw(details.querySelector(".chart").id); });
  }
  const again = () => { for (const id of drawn) draw(id); };
  dark.addEventListener("change", again);
  narrow.addEventListener("change", again);
})();
