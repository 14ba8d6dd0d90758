// The button for the theme. The reader's choice is kept as a cookie, so that the service writes it into the page and nothing
// flashes; without one the system's wish holds. A page that comes back by the browser's button is as it was when it was left,
// and looks the choice up itself. The style sheet shows which theme the button leads to.
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const YEAR_S = 365 * 24 * 3600;

function wear(theme) {
  root.dataset.theme = theme;
  document.dispatchEvent(new Event("themechange"));
}

function wearChosen() {
  const chosen = /(?:^|; )pullback_theme=(light|dark)(?:;|$)/.exec(document.cookie)?.[1];
  if (chosen && chosen !== root.dataset.theme) wear(chosen);
}

document.querySelector("button.theme").addEventListener("click", () => {
  const inForce = root.dataset.theme ?? (system.matches ? "dark" : "light");
  const chosen = inForce === "dark" ? "light" : "dark";
  document.cookie = `pullback_theme=${chosen}; path=/; max-age=${YEAR_S}; samesite=lax`;
  wear(chosen);
});
wearChosen(); // read from the browser's cache
addEventListener("pageshow", wearChosen); // or kept whole
system.addEventListener("change", () => document.dispatchEvent(new Event("themechange")));
