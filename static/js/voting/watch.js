// The stop watch of an answer: since when a pair is shown, and how long of that its tab was hidden.
"use strict";

let shownAt = performance.now();
let hiddenMs = 0;
// Since when the tab is hidden, if it is.
let hiddenSince = document.hidden ? shownAt : null;

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
