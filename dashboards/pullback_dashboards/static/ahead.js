// Asks for a figure's data and its library while the page is still being read. A script does it, and no element of the page,
// since readers without scripts need neither. Where it comes later than the figure has asked, it has nothing left to do.
const { json, library } = document.currentScript.dataset;
for (const [href, as] of document.querySelector("[data-asked]") ? [] : [[json, "fetch"], [library, "script"]]) {
  const link = Object.assign(document.createElement("link"), { rel: "preload", href, as });
  if (as === "fetch") link.crossOrigin = "anonymous"; // as fetch() asks for it
  document.head.append(link);
}
