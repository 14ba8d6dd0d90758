// Answers clicks and filters inside an element with data-swap without a reload: the page of the new address is fetched, the
// element of the same id is exchanged, and the address bar follows. Without this script the same links and forms load the page.

let shown = location.pathname + location.search; // what the page shows; a link to a part of it changes neither
let asked = 0; // only the newest question is answered: typing is faster than fetching

async function show(address, { remember }) {
  const question = ++asked;
  const place = () => document.querySelector("[data-swap]");
  place().setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    const text = await answer.text();
    if (question !== asked) return;
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById(place().id);
    if (!answer.ok || !fresh) { location.assign(address); return; }
    const focused = remembered(document.activeElement);
    place().replaceChildren(...fresh.childNodes);
    shown = address;
    if (remember) history.pushState(null, "", address);
    focused?.();
  } catch {
    location.assign(address);
  } finally {
    place()?.removeAttribute("aria-busy");
  }
}

// Where the keyboard was: the same field with its cursor, the link of the same row, or what is chosen of the same question.
function remembered(element) {
  if (!element?.closest("[data-swap]")) return null;
  const { name, selectionStart, selectionEnd } = element;
  const row = element.closest("tr[id]")?.id;
  const group = element.closest("[aria-label]")?.getAttribute("aria-label");
  return () => {
    const again = document.querySelector(`[data-swap] [aria-label="${group}"]`);
    const next = name ? document.querySelector(`[data-swap] [name="${name}"]:not([type=hidden])`)
      : row ? document.querySelector(`#${row} .toggle`) : again?.querySelector("a[aria-current]") ?? again?.querySelector("a");
    next?.focus({ preventScroll: true });
    if (selectionStart !== undefined && selectionStart !== null && next) {
      next.value = element.value;
      next.setSelectionRange(selectionStart, selectionEnd);
    }
  };
}

function addressOf(form) {
  const told = [...new FormData(form)].filter(([, value]) => value !== "");
  return `${new URL(form.action).pathname}?${new URLSearchParams(told)}`;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-swap] a[href]");
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const target = new URL(link.href);
  if (target.origin !== location.origin || target.pathname !== location.pathname) return;
  event.preventDefault();
  show(target.pathname + target.search, { remember: true });
});

document.addEventListener("submit", (event) => {
  if (!event.target.closest("[data-swap]") || event.target.method !== "get") return;
  event.preventDefault();
  show(addressOf(event.target), { remember: true });
});

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-swap] select, [data-swap] input[type=checkbox]")) event.target.form.requestSubmit();
});

let typing;
document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-swap] input[type=search]")) return;
  clearTimeout(typing);
  typing = setTimeout(() => event.target.form?.requestSubmit(), 250);
});

addEventListener("popstate", () => {
  const address = location.pathname + location.search;
  if (address !== shown) show(address, { remember: false });
});
