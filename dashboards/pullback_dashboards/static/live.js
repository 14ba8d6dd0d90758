// Keeps parts of a page current without a reload: every element with data-live is fetched again as part of the same page
// and exchanged when it differs. Pauses in a hidden tab, slows down when the service does not answer. What knows earlier
// that the page is out of date dispatches "stale" on the document.

const said = new Map(); // what the service said of each part last: the reader may have opened something in it since

// Forms carry a proof that is written another way in every answer: that is no news.
const news = (html) => html.replace(/(name="csrf" value=")[0-9a-f]+/g, "$1");

const parts = () => [...document.querySelectorAll("[data-live]")];
let patience = 1;
let timer = null;

async function refresh() {
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      // What goes wrong behind a page's opening is told in the page, under the status 200.
      if (!parts().some((part) => fresh.getElementById(part.id))) throw new Error("another page was answered");
      for (const part of parts()) {
        const next = fresh.getElementById(part.id);
        if (!next || part.contains(document.activeElement)) continue;
        const before = said.get(part.id) ?? news(part.innerHTML);
        said.set(part.id, news(next.innerHTML));
        if (said.get(part.id) === before) continue;
        const opened = new Set([...part.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
        const atFoot = part.scrollTop + part.clientHeight >= part.scrollHeight - 4;
        part.replaceChildren(...next.childNodes);
        for (const each of part.querySelectorAll("details > summary")) {
          if (opened.has(each.textContent)) each.parentElement.open = true;
        }
        if (atFoot && part.matches(".log")) part.scrollTop = part.scrollHeight;
      }
      patience = 1;
    } catch {
      patience = Math.min(patience * 2, 16);
    }
  }
  wait();
}

function wait() {
  clearTimeout(timer);
  const pauses = parts().map((part) => Number(part.dataset.live));
  if (pauses.length) timer = setTimeout(refresh, Math.min(Math.min(...pauses) * patience, 60) * 1000);
}

let due = null;
document.addEventListener("stale", () => {
  clearTimeout(due);
  due = setTimeout(refresh, 200); // several pieces of news at once are one look
});
wait();
