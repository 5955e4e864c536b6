// The stop watch of an answer: since when a pair is shown, and how long of that its tab was hidden.
"use strict";

let shownAt = performance.now();
let hiddenMs = 0;
// Since when the tab is hidden, if it is.
let hiddenSince = document.hidden ? shownAt : null;
// How the pair has stood since then; "changed" if it did not stay so.
let layoutShown = "";

function startWatch() {
  shownAt = performance.now();
  hiddenMs = 0;
  layoutShown = layoutNow();
  if (hiddenSince !== null) hiddenSince = shownAt;
}

function hiddenUntil(now) {
  return hiddenMs + (hiddenSince === null ? 0 : now - hiddenSince);
}

window.addEventListener("resize", () => { if (layoutNow() !== layoutShown) layoutShown = "changed"; });

document.addEventListener("visibilitychange", () => {
  const now = performance.now();
  hiddenMs = hiddenUntil(now);
  hiddenSince = document.hidden ? now : null;
});
