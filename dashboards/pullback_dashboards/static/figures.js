// Draws the page's figures with Plotly, each when the reader comes near it. Their data come as JSON from the address in
// data-figure, the library from the one in data-library; colours are names of the style sheet's custom properties
// ("var(--series-1)") and are looked up here, again whenever the theme changes.
/* global Plotly */

// Within a window's height of what is seen. Told with the first frame, so that the page with its stills is painted before
// the library runs, and not before somebody looks at the tab.
function near(place) {
  return new Promise((resolve) => {
    const watch = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return;
      watch.disconnect();
      resolve();
    }, { rootMargin: "100%" });
    watch.observe(place);
  });
}

const libraries = new Map();

// Runs a script once, under an address that is cached for ever: browsers keep what they compiled of it, and from the third
// page on do not compile Plotly again, which takes three times as long as to draw with it.
function library(address) {
  if (!libraries.has(address)) {
    libraries.set(address, new Promise((resolve, reject) => {
      const script = Object.assign(document.createElement("script"), { src: address });
      script.addEventListener("load", resolve);
      script.addEventListener("error", reject);
      document.head.append(script);
    }));
  }
  return libraries.get(address);
}

async function read(place) {
  place.dataset.asked = "yes";
  let answer = await fetch(place.dataset.figure); // as the preload asks for it, or it would be asked for twice
  if (answer.status === 503) { // busy: once more
    await new Promise((done) => setTimeout(done, 1000 * answer.headers.get("retry-after")));
    answer = await fetch(place.dataset.figure);
  }
  if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
  return complete(await answer.json());
}

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

async function show(place) {
  await near(place);
  let figure;
  try {
    [figure] = await Promise.all([read(place), library(place.dataset.library)]);
  } catch {
    return; // the still stays, and says the same
  }
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

for (const place of document.querySelectorAll("[data-figure]")) show(place);
