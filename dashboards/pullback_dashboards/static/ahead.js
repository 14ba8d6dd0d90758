// Asks for a figure's data and its library while the page is still being read. A script does it, and no element of the page,
// since readers without scripts need neither.
const { json, library } = document.currentScript.dataset;
for (const [href, as] of [[json, "fetch"], [library, "script"]]) {
  const link = Object.assign(document.createElement("link"), { rel: "preload", href, as });
  if (as === "fetch") link.crossOrigin = "anonymous"; // as fetch() asks for it
  document.head.append(link);
}
