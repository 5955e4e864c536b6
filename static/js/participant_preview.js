// The preview as a participant: a pair is answered by the keys with which voters answer.
"use strict";

document.addEventListener("keydown", (event) => {
  if (!isSingleKey(event) || (event.shiftKey && event.key.startsWith("Arrow"))) return;
  // A player that has the focus winds with its arrows.
  if (event.target.matches("audio") && event.key.startsWith("Arrow")) return;
  const pressed = document.querySelector(`button[name=choice][value="${event.key.toLowerCase() === "s" ? "skip" : sideOf(event.key)}"]`);
  if (!pressed) return;
  event.preventDefault();
  pressed.click();
});
