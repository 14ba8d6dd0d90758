// Draws the page's figures with Plotly. Their data lie in the page as JSON; colours are names of the style sheet's
// custom properties ("var(--series-1)") and are looked up here, again whenever the theme changes.
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

for (const source of document.querySelectorAll("script[type='application/json'][data-figure]")) {
  const place = document.getElementById(source.dataset.figure);
  const figure = JSON.parse(source.textContent);
  place.replaceChildren();
  place.dataset.drawn = "pending";
  draw(place, figure).then(() => { place.dataset.drawn = "yes"; });
  document.addEventListener("themechange", () => draw(place, figure));
  matchMedia("(max-width: 640px)").addEventListener("change", () => draw(place, figure)); // a phone was turned
  place.on("plotly_click", ({ points }) => {
    const target = points[0]?.customdata?.at(-1);
    if (typeof target === "string" && target.startsWith("/")) location.assign(target);
  });
}
