// The button for the theme. The reader's choice is kept as a cookie, so that the service writes it into the page and nothing
// flashes; without one the system's wish holds. The style sheet shows which theme the button leads to.
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const YEAR_S = 365 * 24 * 3600;

document.querySelector("button.theme").addEventListener("click", () => {
  const inForce = root.dataset.theme ?? (system.matches ? "dark" : "light");
  root.dataset.theme = inForce === "dark" ? "light" : "dark";
  document.cookie = `pullback_theme=${root.dataset.theme}; path=/; max-age=${YEAR_S}; samesite=lax`;
  document.dispatchEvent(new Event("themechange"));
});
system.addEventListener("change", () => document.dispatchEvent(new Event("themechange")));
