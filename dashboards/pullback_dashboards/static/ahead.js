// Asks for a figure's data and its library as soon as the page is painted: earlier they would share the processors with
// the painting. A script does it, and no element of the page, since readers without scripts need neither. Where it comes
// later than the figure has asked, it has nothing left to do.
const { json, library } = document.currentScript.dataset;
requestAnimationFrame(() => setTimeout(() => {
  for (const [href, as] of document.querySelector("[data-asked]") ? [] : [[json, "fetch"], [library, "script"]]) {
    const link = Object.assign(document.createElement("link"), { rel: "preload", href, as });
    if (as === "fetch") link.crossOrigin = "anonymous"; // as fetch() asks for it
    document.head.append(link);
  }
}));
