// Follows the log of a job by server-sent events: <pre data-stream="ADDRESS" data-after="ATTEMPT:BYTE">. The page has the
// log up to that byte; the stream goes on behind it. Where no stream is to be had, live.js fetches the page again instead.

const log = document.querySelector("pre[data-stream]");
const told = document.getElementById("log-live");
const MOST_CHARACTERS = 2_000_000; // of a very long log the beginning is dropped: the whole one is a link away
let source = null;
let after = log?.dataset.after ?? "";
let attempt = Number(after.split(":")[0]);
let state = null;

// As wording/controls.py has it: what would move, hide or turn the text beside it is shown instead.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

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

function onLog(event) {
  const piece = JSON.parse(event.data);
  after = event.lastEventId;
  if (piece.attempt !== attempt) {
    if (attempt) log.textContent = ""; // a new try begins, and its log with it
    attempt = piece.attempt;
    const name = document.getElementById("log-attempt");
    if (name) name.textContent = `of attempt ${attempt}`;
  }
  write(visible(piece.text));
}

// What the page says of the job is fetched anew with every piece of news, and rarely without.
function onJob(event) {
  if (state !== null && state !== event.data) document.dispatchEvent(new Event("stale"));
  state = event.data;
}

function pace(seconds) {
  for (const part of document.querySelectorAll("[data-live]")) part.dataset.live = seconds;
}

function close(words) {
  source?.close();
  source = null;
  tell(words);
}

function open() {
  const address = new URL(log.dataset.stream, location.href);
  if (after) address.searchParams.set("after", after);
  source = new EventSource(address);
  source.addEventListener("open", () => { tell("live"); pace(30); });
  source.addEventListener("log", onLog);
  source.addEventListener("job", onJob);
  source.addEventListener("end", () => {
    close("ended");
    pace(5);
    document.dispatchEvent(new Event("stale"));
  });
  source.addEventListener("error", () => {
    if (source?.readyState !== EventSource.CLOSED) return tell("reconnecting"); // it does so by itself
    close("every few seconds");
    pace(5);
    log.dataset.live = 5;
  });
}

if (log && log.dataset.stream) {
  log.scrollTop = log.scrollHeight;
  open();
  // A browser opens six connections to one host, over all its tabs: those that nobody sees give theirs back.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && source) close("paused");
    else if (!document.hidden && !source && told.textContent === "paused") open();
  });
}
