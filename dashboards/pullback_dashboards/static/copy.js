// Gives every <pre data-copy> a button that copies its text. Without a clipboard (plain http, old browsers) there is none.

function offer(source) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${source.dataset.copy}`);
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(source.textContent.trim());
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  const frame = document.createElement("div");
  frame.className = "copied";
  source.replaceWith(frame);
  frame.append(source, button);
}

function offerAll() {
  for (const source of document.querySelectorAll(":not(.copied) > pre[data-copy]")) offer(source);
}

if (navigator.clipboard) {
  offerAll();
  // Parts that are exchanged while the page is open bring new ones.
  new MutationObserver(offerAll).observe(document.querySelector("main"), { childList: true, subtree: true });
}
