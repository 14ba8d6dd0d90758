// The button for the theme. The reader's choice is kept as a cookie, so that the service writes it into the page and nothing
// flashes; without one the system's wish holds. The style sheet shows which theme the button leads to.
// A page that stood aside, in another tab or behind the button Back, wears what was chosen meanwhile.
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const YEAR_S = 365 * 24 * 3600;

const tell = () => document.dispatchEvent(new Event("themechange"));

function wear(theme) {
  if (!theme || theme === root.dataset.theme) return;
  root.dataset.theme = theme;
  tell();
}

const wearChosen = () => wear(/pullback_theme=(light|dark)/.exec(document.cookie)?.[1]);

document.querySelector("button.theme").addEventListener("click", () => {
  const inForce = root.dataset.theme ?? (system.matches ? "dark" : "light");
  const chosen = inForce === "dark" ? "light" : "dark";
  document.cookie = `pullback_theme=${chosen}; path=/; max-age=${YEAR_S}; samesite=lax`;
  wear(chosen);
});
wearChosen();
addEventListener("pageshow", wearChosen);
document.addEventListener("visibilitychange", wearChosen);
system.addEventListener("change", tell);
