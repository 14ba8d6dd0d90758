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
  // Forms in the style of the page: a browser draws its own fields and buttons with borders that nobody else uses.
  for (const control of document.querySelectorAll("button, input, select, textarea")) {
    if (shown(control) && ["outset", "inset"].includes(getComputedStyle(control).borderTopStyle)) {
      complaints.push(`looks as the browser draws it: ${named(control)}`);
    }
  }
  if (root.lang !== "en") complaints.push(`its language is ${JSON.stringify(root.lang)}`);
  if (document.querySelectorAll("main h1").length !== 1) complaints.push("not exactly one h1 in its main part");

  // Contrast of every text with all that is painted behind it, tints, hatching and drawings included; 3 is enough for large
  // letters. Axe tells nothing of text over gradients, in drawings or below something transparent.
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const parsed = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      known.set(colour, [...canvas.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(colour);
  };
  const over = ([red, green, blue, alpha], ground) => [red, green, blue].map((part, place) => part * alpha / 255 + ground[place] * (1 - alpha / 255));
  const luminance = (colour) => colour.slice(0, 3).reduce((sum, part, place) =>
    sum + [0.2126, 0.7152, 0.0722][place] * (part <= 10 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4), 0);
  const contrast = (one, other) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((first, second) => second - first);
    return (light + 0.05) / (dark + 0.05);
  };
  const hatch = parsed(getComputedStyle(root).getPropertyValue("--hatch").trim());
  const grounds = new Map();
  const ground = (element) => {
    if (!element) return [255, 255, 255];
    if (!grounds.has(element)) {
      const style = getComputedStyle(element);
      const colour = parsed(style.backgroundColor);
      const painted = over(colour, colour[3] === 255 ? colour : ground(element.parentElement));
      grounds.set(element, style.backgroundImage.includes("repeating") ? over(hatch, painted) : painted);
    }
    return grounds.get(element);
  };
  // In a drawing: the last opaque rectangle that holds the text, else what is behind the drawing.
  const drawnOn = (text) => {
    const { left, right, top, bottom } = text.getBoundingClientRect();
    const [x, y] = [(left + right) / 2, (top + bottom) / 2];
    const under = [...text.closest("svg").querySelectorAll("rect")].filter((rect) => {
      const box = rect.getBoundingClientRect();
      const { fill, fillOpacity, opacity } = getComputedStyle(rect);
      return box.left <= x && x <= box.right && box.top <= y && y <= box.bottom && fill !== "none" && fillOpacity === "1"
        && opacity === "1" && rect.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
    });
    return under.length ? over(parsed(getComputedStyle(under.at(-1)).fill), ground(text.closest("svg"))) : ground(text.closest("svg"));
  };
  const judge = (element, colour, behind) => {
    const { fontSize, fontWeight } = getComputedStyle(element);
    const large = parseFloat(fontSize) >= 24 || (parseFloat(fontSize) >= 18.6 && fontWeight >= 700);
    const found = contrast(over(parsed(colour), behind), behind);
    if (found < (large ? 3 : 4.5)) complaints.push(`has a contrast of ${found.toFixed(2)}: ${named(element)}`);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || element.closest(".hidden, :disabled, script, style, title, option") || !shown(element)) continue;
    if (element.closest("svg")) judge(element, getComputedStyle(element).fill, drawnOn(element));
    else judge(element, getComputedStyle(element).color, ground(element));
  }
  for (const field of document.querySelectorAll("[placeholder]")) {
    if (shown(field)) judge(field, getComputedStyle(field, "::placeholder").color, ground(field));
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
