// What a page must have wherever one looks at it: evaluated inside the page, answers a list of complaints.
// Of the keyboard only where asked for: it moves the focus through everything.
(keyboard) => {
  const complaints = [];
  const root = document.documentElement;

  const named = (element) => {
    const words = (element.getAttribute("aria-label") || element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
    return `<${element.localName}${element.id ? ` id=${element.id}` : ""} class="${element.getAttribute("class") || ""}"> ${words}`;
  };
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true })
    && element.getBoundingClientRect().width > 0;

  // No sideways scrolling of the page: whatever is wide scrolls in a box of its own.
  if (root.scrollWidth > innerWidth) {
    const clipped = (element) => {
      for (let above = element.parentElement; above && above !== document.body; above = above.parentElement) {
        if (getComputedStyle(above).overflowX !== "visible") return true;
      }
      return false;
    };
    const wide = [...document.body.querySelectorAll("*")]
      .filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !clipped(element));
    complaints.push(`${root.scrollWidth - innerWidth} px wider than its window: ${wide.slice(-2).map(named).join("; ")}`);
  }
  if (root.lang !== "en") complaints.push(`its language is ${JSON.stringify(root.lang)}`);
  if (document.querySelectorAll("main h1").length !== 1) complaints.push("not exactly one h1 in its main part");

  // Text in drawings: its fill against the ground that it is painted on.
  const parsed = (colour) => {
    const canvas = parsed.canvas ??= new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([red, green, blue]) => [[red, 0.2126], [green, 0.7152], [blue, 0.0722]]
    .reduce((sum, [part, weight]) => sum + weight * (part <= 10 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4), 0);
  for (const text of document.querySelectorAll("svg text")) {
    if (!text.textContent.trim() || !shown(text)) continue;
    let ground = text.closest("svg");
    while (ground && parsed(getComputedStyle(ground).backgroundColor)[3] < 255) ground = ground.parentElement;
    const [light, dark] = [parsed(getComputedStyle(text).fill), parsed(getComputedStyle(ground ?? root).backgroundColor)]
      .map(luminance).sort((one, other) => other - one);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < 4.5) complaints.push(`has a contrast of ${contrast.toFixed(2)} in a drawing: ${named(text)}`);
  }

  if (!keyboard) return complaints;

  const stops = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
    .filter((element) => element.tabIndex >= 0 && !element.disabled && shown(element));
  const skip = stops[0];
  if (!skip?.matches(".skip") || !document.querySelector(skip.getAttribute("href"))?.matches("main")) {
    complaints.push("the first stop of the keyboard does not skip to the content");
  }

  // The ring: shown, two pixels or more, and cut off on no side by a box that clips.
  let before = null;
  const scrolled = [scrollX, scrollY];
  for (const stop of stops) {
    stop.focus({ preventScroll: false });
    if (document.activeElement !== stop) { complaints.push(`cannot be focused: ${named(stop)}`); continue; }
    const style = getComputedStyle(stop);
    const width = parseFloat(style.outlineWidth);
    if (style.outlineStyle === "none" || width < 2) complaints.push(`shows no focus ring: ${named(stop)}`);
    const box = stop.getBoundingClientRect();
    const reach = parseFloat(style.outlineOffset) + width;
    for (let above = stop.parentElement; above && above !== document.body; above = above.parentElement) {
      const clip = getComputedStyle(above);
      if (clip.overflowX === "visible" && clip.overflowY === "visible") continue;
      const frame = above.getBoundingClientRect();
      const sides = [
        [box.left, frame.left, -1, clip.borderLeftWidth], [box.right, frame.right, 1, clip.borderRightWidth],
        [box.top, frame.top, -1, clip.borderTopWidth], [box.bottom, frame.bottom, 1, clip.borderBottomWidth],
      ];
      const cut = sides.filter(([at, edge, way, border]) =>
        way * (edge - at) >= -0.5 && way * (at + way * reach - edge) + parseFloat(border) > 0.5 + parseFloat(border) * 2);
      if (cut.length) complaints.push(`has its focus ring cut off by ${named(above).split(">")[0]}>: ${named(stop)}`);
      if (clip.overflowX !== "visible" && above.scrollWidth > above.clientWidth) break; // it scrolls into sight
    }
    // The order: down the page, and from left to right within a row. A column beside another may begin higher up.
    if (before && box.bottom + scrollY < before.top - 1 && box.left < before.right && !stop.closest("header.bar")) {
      complaints.push(`comes after what is below it, ${named(before.stop)}: ${named(stop)}`);
    }
    before = { stop, top: box.top + scrollY, right: box.right };
  }
  document.activeElement?.blur();
  scrollTo(...scrolled);
  return complaints;
}
