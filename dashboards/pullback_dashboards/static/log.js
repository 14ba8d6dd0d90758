// Follows the log of a job: <pre data-log="ADDRESS" data-attempt="1" data-offset="BYTE">. The page has the log up to that byte;
// the service answers a request for what follows when more is written, or after half a minute.

const log = document.querySelector("pre[data-log]");
const told = document.getElementById("log-live");
const MOST_CHARACTERS = 2_000_000; // of a very long log the beginning is dropped: the whole one is a link away
const WAIT_S = 30;
const UNFINISHED = ["queued", "leased", "running"];
const PAUSE_MS = 1000;
let attempt = Number(log?.dataset.attempt);
let offset = Number(log?.dataset.offset);
let decoder = new TextDecoder(); // keeps the beginning of a character until its rest is written
let under_way = null;

// As visible_text.py of the service has it: what would move, hide or turn the text beside it is shown instead.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb]/gu;

function visible(text) {
  return text.replace(HIDDEN, (character) => {
    const code = character.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "\u2421" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

const tell = (words) => { told.textContent = words; };

function write(text) {
  const atFoot = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  log.querySelector("[data-nothing]")?.remove();
  const last = log.lastChild;
  if (last?.nodeType === Node.TEXT_NODE) last.appendData(text);
  else log.append(text);
  const excess = log.textContent.length - MOST_CHARACTERS;
  if (excess > 0) log.textContent = log.textContent.slice(excess + MOST_CHARACTERS / 10);
  if (atFoot) log.scrollTop = log.scrollHeight;
}

async function read() {
  const address = new URL(log.dataset.log, location.href);
  address.search = new URLSearchParams({ attempt, offset, wait_s: WAIT_S });
  const answer = await fetch(address, { signal: under_way.signal });
  if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
  const piece = await answer.arrayBuffer();
  if (piece.byteLength && !offset) begin();
  write(visible(decoder.decode(piece, { stream: true })));
  offset += piece.byteLength;
  return answer.headers;
}

function begin() {
  log.textContent = ""; // a new try begins, and its log with it
  const name = document.getElementById("log-attempt");
  if (name) name.textContent = `of attempt ${attempt}`;
}

const pause = () => new Promise((done) => { setTimeout(done, PAUSE_MS); });

async function follow() {
  under_way = new AbortController();
  tell("live");
  while (!document.hidden) {
    const began = Date.now();
    try {
      const headers = await read();
      tell("live");
      if (headers.get("pullback-log-complete") === "true") {
        document.dispatchEvent(new Event("stale"));
        if (!UNFINISHED.includes(headers.get("pullback-job-state"))) return tell("ended");
        attempt += 1;
        offset = 0;
        decoder = new TextDecoder();
      } else if (Date.now() - began < PAUSE_MS) await pause();
    } catch (error) {
      if (error.name === "AbortError") break;
      tell("reconnecting");
      await pause();
    }
  }
  under_way = null;
  tell("paused");
}

if (log) {
  log.scrollTop = log.scrollHeight;
  follow();
  // A browser opens six connections to one host, over all its tabs: those that nobody sees give theirs back.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) under_way?.abort();
    else if (told.textContent === "paused") follow();
  });
}
