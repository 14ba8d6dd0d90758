// Draws the page's figures with Plotly. Their data come as JSON from the address in data-figure; colours are names of the
// style sheet's custom properties ("var(--series-1)") and are looked up here, again whenever the theme changes.
/* global Plotly */

function resolved(value, style) {
  if (typeof value === "string" && value.startsWith("var(")) return style.getPropertyValue(value.slice(4, -1)).trim();
  if (Array.isArray(value)) return value.map((item) => resolved(item, style));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(item, style)]));
  }
  return value;
}

// What a narrow page changes of the layout, by dotted path: {"height": 400, "xaxis.tickvals": […]}.
function narrowed(figure, width) {
  if (width >= 560) return figure;
  const layout = structuredClone(figure.layout);
  for (const [path, value] of Object.entries(figure.narrow ?? {})) {
    const steps = path.split(".");
    const last = steps.pop();
    steps.reduce((part, step) => part[step], layout)[last] = value;
  }
  return { ...figure, layout };
}

function draw(place, figure) {
  const style = getComputedStyle(document.documentElement);
  const { data, layout, config } = resolved(narrowed(figure, place.clientWidth), style);
  return Plotly.react(place, data, layout, config);
}

// A mark says of its commit only the place: words and address stand once for all marks there, and are put in here.
function complete(figure) {
  const { commits, ...rest } = figure;
  const told = (data) => data && [`${data[0]}<br>${commits[data[1]][0]}`, commits[data[1]][1]];
  const data = figure.data.map((trace) => (trace.customdata ? { ...trace, customdata: trace.customdata.map(told) } : trace));
  return { ...rest, data };
}

for (const place of document.querySelectorAll("[data-figure]")) {
  const answer = await fetch(place.dataset.figure, { headers: { accept: "application/json" } });
  if (!answer.ok) continue; // the still stays, and says the same
  const figure = complete(await answer.json());
  place.replaceChildren();
  place.setAttribute("role", "group"); // an image holds nothing that can be pressed; Plotly's figure does
  const redraw = async () => {
    place.dataset.drawn = "pending";
    await draw(place, figure);
    place.dataset.drawn = "yes";
  };
  await redraw();
  document.addEventListener("themechange", redraw);
  for (const other of ["(max-width: 640px)", "print"]) matchMedia(other).addEventListener("change", redraw);
  place.on("plotly_click", ({ points }) => {
    const target = points[0]?.customdata?.at(-1);
    if (typeof target === "string" && target.startsWith("/")) location.assign(target);
  });
}
