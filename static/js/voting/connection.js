// The socket of the voting page: what waits for an answer, and what is done where none comes.
"use strict";

// A server that is frozen closes nothing: without an answer for so long the page says so and connects anew. The wait
// doubles each time, so that a server that is merely slow is not kept busy by pages that come again and again.
const ANSWER_WITHIN_MS = 6000;
const LONGEST_PATIENCE_MS = 60000;
const SOCKET_PATIENCE_MS = 5000;
const NO_SOCKET = "prefmh-no-socket";
const RELOAD_MS = 4000;
// Of thousands of pages, a few hundred a second come back to a server that was started again.
const LONGEST_PAUSE_MS = 16000;

const connection = document.getElementById("connection");
// What it can say, in the language of the page.
const words = connection.dataset;
let unanswered = null;
let everOpened = false;
let everShown = false;
let withoutSocket = false;
let socket = null;
let socketWrapper = null;
let patience = null;
let triedInVain = 0;

function say(text) {
  connection.textContent = text;
  connection.hidden = !text;
}

htmx.config.wsReconnectDelay = (tries) => Math.min(1000 * 2 ** tries, LONGEST_PAUSE_MS) * Math.random();

function sayLost() {
  // What is pressed without a connection waits in htmx's queue.
  say(unanswered || socketWrapper.queue.length ? words.lostKept : words.lost);
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

// Whether what the server has shown answers the response that was sent, if one was.
function isAnswered() {
  everShown = true;
  // The same screen again is not an answer: the response is still on its way.
  if (unanswered && unanswered.screen === screenKey()) return false;
  unanswered = null;
  expectNothing();
  return true;
}

document.addEventListener("htmx:wsAfterSend", (event) => {
  unanswered = { message: event.detail.message, screen: screenKey() };
  expectAnswer();
});

document.addEventListener("htmx:wsConfigSend", () => {
  if (everOpened && socket.readyState !== WebSocket.OPEN) setTimeout(sayLost);
});

document.addEventListener("htmx:wsConnecting", () => {
  // A frozen server takes connections, and says nothing on them. Before the first one there is another way on: below.
  if (everOpened) expectAnswer();
});

document.addEventListener("htmx:wsOpen", (event) => {
  everOpened = true;
  window.sessionStorage.removeItem(NO_SOCKET);
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
  else if (everOpened) sayLost();
});

// Where sockets are blocked, the form posts like any other and a waiting page asks again from time to time. The next page
// posts at once.
setTimeout(() => {
  if (everOpened) return;
  withoutSocket = true;
  window.sessionStorage.setItem(NO_SOCKET, "1");
  document.documentElement.dataset.socket = "none";
  if (!leaseKey()) setTimeout(() => window.location.reload(), RELOAD_MS);
  // What was pressed meanwhile waits for the socket.
  if (form.dataset.busy && !heldChoice) sendNow(form.querySelector("button.chosen"));
}, window.sessionStorage.getItem(NO_SOCKET) ? 0 : SOCKET_PATIENCE_MS);
