// Times in the reader's own zone; the instant itself, in UTC, stays on hover. Without a script a page shows distances ("3 h ago") and days.

const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

function localise(time) {
  const instant = new Date(time.dateTime);
  if (Number.isNaN(instant.getTime()) || time.dataset.local) return;
  time.dataset.local = "yes";
  if (/^\d{4}-\d\d-\d\d$/.test(time.textContent)) time.textContent = day.format(instant);
  time.title = `${time.dateTime}\n${full.format(instant)}`;
}

const localiseAll = (root) => { for (const time of root.querySelectorAll("time[datetime]")) localise(time); };

localiseAll(document);
// Parts that are exchanged while the page is open bring new times.
new MutationObserver((changes) => {
  for (const change of changes) for (const node of change.addedNodes) if (node.querySelectorAll) localiseAll(node);
}).observe(document.querySelector("main"), { childList: true, subtree: true });
