// The voting page: keys, a stop watch, one response at a time, and a way on when no socket opens.
"use strict";

const form = document.getElementById("response-form");
const elapsed = document.getElementById("elapsed-ms");
const hidden = document.getElementById("hidden-ms");
const notShown = document.getElementById("not-shown");
const connection = document.getElementById("connection");
// What it can say, in the language of the page.
const words = connection.dataset;
const keysWanted = document.getElementById("keys-wanted");
const KEYS_UNWANTED = "prefmh-no-keys";
const KEYS = { ArrowLeft: "left", 1: "left", ArrowRight: "right", 2: "right", s: "skip", S: "skip", Enter: "continue" };
const SOCKET_PATIENCE_MS = 5000;
const RELOAD_MS = 4000;
// A server that is frozen closes nothing: without an answer for so long the page says so and connects anew. The wait
// doubles each time, so that a server that is merely slow is not kept busy by pages that come again and again.
const ANSWER_WITHIN_MS = 6000;
const LONGEST_PATIENCE_MS = 60000;
// Nobody judges a pair in less: the second half of a double click, meant for the pair before.
const TOO_SOON_MS = 250;
// A picture that does not load is asked for once more before anybody is told.
const LOAD_AGAIN_MS = 1000;

let shownAt = performance.now();
// How long the tab was hidden since then, and since when it is, if it is.
let hiddenMs = 0;
let hiddenSince = document.hidden ? shownAt : null;
let shownScreen = screenKey();
let unanswered = null;
let askedBefore = document.getElementById("question")?.textContent;
let everOpened = false;
let everShown = false;
let withoutSocket = false;
let socket = null;
let socketWrapper = null;
let patience = null;
let triedInVain = 0;

function leaseKey() {
  return form.elements.lease ? form.elements.lease.value : "";
}

// What the page shows: a pair, by its lease, or the reason why there is none.
function screenKey() {
  return leaseKey() || document.getElementById("panel").className;
}

function button(choice) {
  return form.querySelector(`button[name=choice][value=${choice}]`);
}

// A picture that was on the screen before is in the browser's cache, and would stand there before the other: the
// order would tell which object the chain is in. So both appear together, and the stop watch starts then.
async function showBothAtOnce(isSecondTime = false) {
  startWatch();
  tellWhetherShown(true);
  const pictures = [...form.querySelectorAll(".option img")];
  if (!pictures.length) return;
  const key = screenKey();
  const sides = form.querySelector(".sides");
  sides.classList.add("loading");
  await Promise.allSettled(pictures.map((picture) => picture.decode()));
  if (screenKey() !== key) return;
  const broken = pictures.filter(isBroken);
  if (broken.length && !isSecondTime) {
    setTimeout(() => { if (screenKey() === key) loadAgain(); }, LOAD_AGAIN_MS);
    return;
  }
  sides.classList.remove("loading");
  tellWhetherShown(!broken.length);
  startWatch();
}

function isBroken(picture) {
  return picture.complete && picture.naturalWidth === 0;
}

function loadAgain() {
  form.querySelectorAll(".option img").forEach((picture) => { if (isBroken(picture)) picture.src = picture.src; });
  showBothAtOnce(true);
}

// Half a pair is no question: it takes no vote, and whoever cannot see it says so. What cannot be skipped tells by words
// what to choose.
function tellWhetherShown(isWhole) {
  const isShown = isWhole || !button("skip");
  const hadFocus = notShown.contains(document.activeElement);
  const chose = document.activeElement.closest("button.option");
  notShown.hidden = isShown;
  form.querySelectorAll("button.option").forEach((option) => { option.disabled = !isShown; });
  if (isShown && hadFocus) document.getElementById("question")?.focus({ preventScroll: true });
  if (!isShown && chose) document.getElementById("load-again").focus();
}

document.getElementById("load-again").addEventListener("click", loadAgain);

// Of pictures that are asked for later, such as those with marks. Errors do not bubble.
form.addEventListener("error", (event) => {
  const isLoading = form.querySelector(".sides.loading");
  if (!isLoading && event.target.matches?.(".option img")) tellWhetherShown(false);
}, { capture: true });

function startWatch() {
  shownAt = performance.now();
  hiddenMs = 0;
  if (hiddenSince !== null) hiddenSince = shownAt;
}

function hiddenUntil(now) {
  return hiddenMs + (hiddenSince === null ? 0 : now - hiddenSince);
}

document.addEventListener("visibilitychange", () => {
  const now = performance.now();
  hiddenMs = hiddenUntil(now);
  hiddenSince = document.hidden ? now : null;
});

// With two questions in turn, people go on answering the old one unless they see that it has changed.
function markChangedQuestion() {
  const question = document.getElementById("question");
  if (!question) return;
  question.classList.toggle("changed", Boolean(askedBefore) && question.textContent !== askedBefore);
  askedBefore = question.textContent;
}

function say(text) {
  connection.textContent = text;
  connection.hidden = !text;
}

// htmx makes its sockets here; the page has to know the one that does not answer.
htmx.createWebSocket = (url) => {
  socket = new WebSocket(url);
  return socket;
};

function expectAnswer() {
  clearTimeout(patience);
  const wait = Math.min(ANSWER_WITHIN_MS * 2 ** triedInVain, LONGEST_PATIENCE_MS);
  patience = setTimeout(connectAnew, wait * (1 + Math.random() / 4));
}

function expectNothing() {
  clearTimeout(patience);
  triedInVain = 0;
}

function connectAnew() {
  triedInVain += 1;
  say(unanswered ? words.noAnswerKept : words.noAnswer);
  // Its end may come minutes later, and must not disturb the new one then.
  socket.onopen = socket.onclose = socket.onerror = null;
  socket.close();
  socketWrapper.reconnect();
}

// Somebody who speaks to the computer, or whose hand slips, can vote by mistake with a single key. The browser remembers.
keysWanted.checked = window.localStorage.getItem(KEYS_UNWANTED) !== "1";
document.documentElement.classList.toggle("without-keys", !keysWanted.checked);
keysWanted.addEventListener("change", () => {
  window.localStorage.setItem(KEYS_UNWANTED, keysWanted.checked ? "0" : "1");
  document.documentElement.classList.toggle("without-keys", !keysWanted.checked);
});

document.addEventListener("keydown", (event) => {
  const choice = KEYS[event.key];
  if (!choice || !keysWanted.checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  // On a focused button Enter presses that button, as everywhere.
  if (event.key === "Enter" && document.activeElement.closest("button")) return;
  const target = button(choice);
  if (!target) return;
  event.preventDefault();
  target.click();
});

// A second click before the answer would repeat the same vote; the server knows it by its key, the page drops it.
form.addEventListener("submit", (event) => {
  const now = performance.now();
  if (form.dataset.busy || form.querySelector(".sides.loading") || now - shownAt < TOO_SOON_MS) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  elapsed.value = String(Math.round(now - shownAt));
  hidden.value = String(Math.round(hiddenUntil(now)));
  form.dataset.busy = "1";
  if (event.submitter) event.submitter.classList.add("chosen");
  // Without a socket the browser sends the form itself; htmx must not take it.
  if (withoutSocket) event.stopImmediatePropagation();
}, { capture: true });

document.addEventListener("htmx:wsAfterSend", (event) => {
  unanswered = { message: event.detail.message, screen: screenKey() };
  expectAnswer();
});

document.addEventListener("htmx:wsBeforeMessage", () => {
  form.dataset.hadFocus = form.contains(document.activeElement) ? "1" : "";
});

document.addEventListener("htmx:wsAfterMessage", () => {
  everShown = true;
  // The same screen again is not an answer: the response is still on its way.
  if (unanswered && unanswered.screen === screenKey()) return;
  unanswered = null;
  expectNothing();
  delete form.dataset.busy;
  if (screenKey() !== shownScreen) {
    shownScreen = screenKey();
    window.scrollTo({ top: 0 });
    markChangedQuestion();
    showBothAtOnce();
  }
  // The swap took the focused element away; without this a screen reader would start at the top of the page.
  if (form.dataset.hadFocus) form.querySelector("h1")?.focus({ preventScroll: true });
});

document.addEventListener("htmx:wsConnecting", () => {
  // A frozen server takes connections, and says nothing on them. Before the first one there is another way on: below.
  if (everOpened) expectAnswer();
});

document.addEventListener("htmx:wsOpen", (event) => {
  everOpened = true;
  socketWrapper = event.detail.socketWrapper;
  say("");
  if (!unanswered) {
    expectNothing();
    return;
  }
  // Sent into a connection that was dying, it may be lost. The server knows it by its key should it arrive twice.
  socketWrapper.send(unanswered.message);
  expectAnswer();
});

document.addEventListener("htmx:wsClose", (event) => {
  const code = event.detail.event.code;
  // htmx comes again by itself, or nobody should.
  clearTimeout(patience);
  // Whom a platform has sent, the first page tells how their part ended, and gives them their code.
  if (code === 4401 && everShown && "hasEnd" in document.getElementById("voting").dataset) window.location.reload();
  else if (code === 4401) say(words.shownOut);
  else if (code === 4400) window.location.reload();
  else if (everOpened) say(unanswered ? words.lostKept : words.lost);
});

showBothAtOnce();

// Where sockets are blocked, the form posts like any other and a waiting page asks again from time to time.
setTimeout(() => {
  if (everOpened) return;
  withoutSocket = true;
  delete form.dataset.busy;
  document.documentElement.dataset.socket = "none";
  if (!leaseKey()) setTimeout(() => window.location.reload(), RELOAD_MS);
}, SOCKET_PATIENCE_MS);
