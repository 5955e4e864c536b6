// Recordings: one of a pair plays at a time, and a single key plays both, the first one first.
"use strict";

function recordings() {
  return [...form.querySelectorAll(".option audio")];
}

// What plays once the other one has ended.
let next = null;
// Whoever has not heard both judges nothing: each plays to its end, or for so long.
const HEARD_S = 10;
const NEAR_THE_END_S = 0.3;
// Those that were heard, by their addresses: the same pair may be sent once more.
const heard = new Set();

function areHeard() {
  return !skipButton() || recordings().every((recording) => heard.has(recording.src));
}

function noteHeard(recording) {
  const { played, duration, src } = recording;
  const seconds = Array.from({ length: played.length }, (_, at) => played.end(at) - played.start(at));
  const enough = Math.min(HEARD_S, duration - NEAR_THE_END_S);
  if (heard.has(src) || !(seconds.reduce((sum, each) => sum + each, 0) >= enough)) return;
  heard.add(src);
  tellWhetherShown(notShown.hidden);
}

function stopPlaying() {
  next = null;
  recordings().forEach((recording) => recording.pause());
}

function playFromStart(recording) {
  recording.currentTime = 0;
  // Refused where the browser wants a press on the page first, and where it is stopped before it has begun.
  recording.play().catch((error) => {
    if (!["NotAllowedError", "AbortError"].includes(error.name)) tellWhetherShown(false);
  });
}

// While something plays, the same key stops it.
function playBoth() {
  const [first, second] = recordings();
  if (!first) return;
  if (recordings().some((recording) => !recording.paused)) {
    stopPlaying();
    return;
  }
  next = second;
  playFromStart(first);
}

// Only where this script runs does the button do anything.
function offerToPlay() {
  const offered = form.querySelector("#play-both");
  if (offered) offered.hidden = false;
}

document.addEventListener("htmx:wsAfterMessage", offerToPlay);
offerToPlay();

// Events of recordings do not bubble.
form.addEventListener("play", (event) => {
  recordings().forEach((recording) => { if (recording !== event.target) recording.pause(); });
}, { capture: true });

form.addEventListener("timeupdate", (event) => noteHeard(event.target), { capture: true });

form.addEventListener("ended", (event) => {
  noteHeard(event.target);
  const follows = next;
  next = null;
  if (follows?.isConnected) playFromStart(follows);
}, { capture: true });

form.addEventListener("click", (event) => {
  if (event.target.closest("#play-both")) playBoth();
});

document.addEventListener("keydown", (event) => {
  if (["p", "P"].includes(event.key) && isSingleKey(event) && recordings().length) playBoth();
});

// A player that was reached by the keyboard has arrows of its own, which wind it. One that was pressed by mouse would
// keep every key to itself, and the next key is the answer: so it gives the focus back.
let isTabPressed = false;
let isReachedByTab = false;

document.addEventListener("keydown", (event) => { isTabPressed = event.key === "Tab"; }, { capture: true });

form.addEventListener("focusin", () => {
  isReachedByTab = isTabPressed;
  isTabPressed = false;
});

["play", "pause", "seeked"].forEach((name) => form.addEventListener(name, () => {
  const isPressed = document.activeElement.matches(".option audio") && !isReachedByTab;
  if (isPressed) document.getElementById("question").focus({ preventScroll: true });
}, { capture: true }));

function isForPlayer(event) {
  return event.target.matches("audio") && isReachedByTab && event.key.startsWith("Arrow");
}
