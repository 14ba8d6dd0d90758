// The theme: the system's wish unless the reader chose one here before. Runs before the first paint, so that nothing flashes.
const root = document.documentElement;
const KEY = "pullback-theme";

function chosen() {
  try { return localStorage.getItem(KEY); } catch { return null; } // storage may be forbidden; the system's wish then holds
}

function inForce() {
  return root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

root.classList.add("scripted");
if (chosen()) root.dataset.theme = chosen();

document.addEventListener("DOMContentLoaded", () => {
  const button = document.querySelector("button.theme");
  const name = () => {
    const next = inForce() === "dark" ? "light" : "dark";
    button.textContent = next === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to the ${next} theme`);
  };
  button.addEventListener("click", () => {
    root.dataset.theme = inForce() === "dark" ? "light" : "dark";
    try { localStorage.setItem(KEY, root.dataset.theme); } catch { /* not remembered, still switched */ }
    name();
    document.dispatchEvent(new Event("themechange"));
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    name();
    document.dispatchEvent(new Event("themechange"));
  });
  name();
});
