// The cells of the heat map are one stop of the Tab key, and the arrow keys lead from one to the next: a page of a hundred
// cells is not a hundred stops. Without this script every cell is a link like any other.

const CELL = "table.heat a.cell";
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity] };

const rowsOf = (table) => [...table.rows].map((row) => [...row.querySelectorAll("a.cell")]).filter((cells) => cells.length);

function choose(cell) {
  for (const other of cell.closest("table").querySelectorAll("a.cell")) other.tabIndex = other === cell ? 0 : -1;
}

function prepare() {
  const cells = document.querySelectorAll(CELL);
  if (cells.length && ![...cells].some((cell) => cell.getAttribute("tabindex") === "0")) choose(cells[0]);
}

document.addEventListener("focusin", (event) => { if (event.target.matches(CELL)) choose(event.target); });

document.addEventListener("keydown", (event) => {
  const step = STEPS[event.key];
  if (!step || !event.target.matches(CELL) || event.metaKey || event.ctrlKey || event.altKey || event.shiftKey) return;
  const rows = rowsOf(event.target.closest("table"));
  const row = rows.findIndex((cells) => cells.includes(event.target));
  const within = (place, list) => list[Math.max(0, Math.min(list.length - 1, place))];
  const column = rows[row].indexOf(event.target);
  event.preventDefault();
  within(column + step[1], within(row + step[0], rows)).focus();
});

prepare();
// Parts that are exchanged while the page is open bring new cells.
new MutationObserver(prepare).observe(document.querySelector("main"), { childList: true, subtree: true });
