// A pair is answered by a single key.
"use strict";

const ANSWERS = { s: "skip", S: "skip", Enter: "continue" };

document.addEventListener("keydown", (event) => {
  const choice = ANSWERS[event.key] ?? sideOf(event.key);
  if (!choice || !isSingleKey(event)) return;
  // With Shift, arrows move what is enlarged.
  if (event.shiftKey && event.key.startsWith("Arrow")) return;
  if (isForPlayer(event)) return;
  // On a focused button Enter presses that button, as everywhere.
  if (event.key === "Enter" && document.activeElement.closest("button")) return;
  const target = button(choice);
  if (!target) return;
  event.preventDefault();
  target.click();
});
