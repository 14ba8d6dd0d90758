// Keeps parts of a page current without a reload: every element with data-live is fetched again as part of the same page
// and exchanged when it differs. Pauses in a hidden tab, slows down when the service does not answer.

const parts = () => [...document.querySelectorAll("[data-live]")];
const least = Math.min(...parts().map((part) => Number(part.dataset.live)));
let pause = least;

async function refresh() {
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of parts()) {
        const next = fresh.getElementById(part.id);
        if (!next || next.innerHTML === part.innerHTML || part.contains(document.activeElement)) continue;
        const atFoot = part.scrollTop + part.clientHeight >= part.scrollHeight - 4;
        part.replaceChildren(...next.childNodes);
        if (atFoot && part.matches(".log")) part.scrollTop = part.scrollHeight;
      }
      pause = least;
    } catch {
      pause = Math.min(pause * 2, 60);
    }
  }
  if (parts().length) setTimeout(refresh, pause * 1000);
}

if (parts().length) setTimeout(refresh, pause * 1000);
