// Triage by keyboard. In a list j and k go from incident to incident, x ticks the one in focus, and the key of a verdict gives it to
// those that are ticked, else to that one. On the page of an incident v goes to the verdicts, whose keys then press them.
// Letters do something only there and nowhere in a field; without this script the same boxes and buttons are pressed by hand.

const NEXT = "pullback_next"; // the incident to go on with, once the list is shown again
const rows = [...document.querySelectorAll("[data-row]")];
const form = document.querySelector("form:has([data-key])");
const linkOf = (row) => row?.querySelector("a.name");
const boxOf = (row) => row?.querySelector("input[type=checkbox]");

function go(row) {
  linkOf(row)?.focus();
  row?.scrollIntoView({ block: "nearest" });
}

function press(key, row) {
  const button = form?.querySelector(`[data-key="${key}"]`);
  if (!button) return false;
  if (row) {
    if (!rows.some((other) => boxOf(other)?.checked)) boxOf(row).checked = true;
    const next = rows.slice(rows.indexOf(row) + 1).find((other) => !boxOf(other)?.checked);
    if (next) sessionStorage.setItem(NEXT, next.dataset.row);
  }
  button.click();
  return true;
}

function answer(key) {
  const focused = document.activeElement;
  const row = focused.closest("[data-row]");
  if (rows.length && (key === "j" || key === "k")) {
    const place = rows.indexOf(row) + (key === "j" ? 1 : row ? -1 : rows.length);
    go(rows[Math.max(0, Math.min(rows.length - 1, place))]);
    return true;
  }
  if (row && key === "x") { boxOf(row).click(); return true; }
  if (row) return press(key, row);
  if (!rows.length && key === "v") { form?.querySelector("[data-key]")?.focus(); return true; }
  return focused.closest(".verdicts") ? press(key) : false;
}

document.addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || event.shiftKey) return;
  if (event.target.matches("input:not([type=checkbox]), select, textarea")) return;
  if (answer(event.key)) event.preventDefault();
});

const next = sessionStorage.getItem(NEXT);
sessionStorage.removeItem(NEXT);
if (next) go(rows.find((row) => row.dataset.row === next));
