// Times in the reader's own zone: days where the page shows days, and on hover the whole instant, with its ISO form in UTC.
// Without a script a page shows distances ("3 h ago") and days in UTC. A day keeps its form, so that nothing moves.

const full = (instant) => new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" }).format(instant);
const twoDigits = (number) => String(number).padStart(2, "0");
const day = (instant) => `${instant.getFullYear()}-${twoDigits(instant.getMonth() + 1)}-${twoDigits(instant.getDate())}`;

function localise(time) {
  const instant = new Date(time.dateTime);
  if (!Number.isNaN(instant.getTime()) && /^\d{4}-\d\d-\d\d$/.test(time.textContent)) time.textContent = day(instant);
}

const localiseAll = (root) => { for (const time of root.querySelectorAll("time[datetime]")) localise(time); };

// The words for an instant are made when somebody points at it: a page has hundreds, and the first takes 20 ms.
document.addEventListener("pointerover", ({ target }) => {
  const time = target.closest?.("time[datetime]");
  const instant = new Date(time?.dateTime);
  if (time && time.title === time.dateTime && !Number.isNaN(instant.getTime())) time.title += `\n${full(instant)}`;
});

localiseAll(document);
// Parts that are exchanged while the page is open bring new times.
new MutationObserver((changes) => {
  for (const change of changes) for (const node of change.addedNodes) if (node.querySelectorAll) localiseAll(node);
}).observe(document.querySelector("main"), { childList: true, subtree: true });
