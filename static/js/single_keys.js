// Whether a key that is pressed alone is meant. Somebody who speaks to the computer, or whose hand slips, can do by
// mistake what a single key does, so it can be switched off. The browser remembers.
"use strict";

const KEYS_UNWANTED = "prefmh-no-keys";
// Only pages on which keys answer offer to switch them off.
const keysWanted = document.getElementById("keys-wanted");

function isSingleKey(event) {
  const isPlain = !(event.ctrlKey || event.metaKey || event.altKey || event.repeat);
  const isTyped = event.target.matches("input:not([type=checkbox]), textarea, select");
  return isPlain && !isTyped && (keysWanted?.checked ?? true);
}

// How the two objects stand: beside each other, stacked, or "" where there are none.
function layoutNow() {
  const [first, second] = [...document.querySelectorAll(".sides .reading")].map((each) => each.getBoundingClientRect());
  if (!second) return "";
  return first.right <= second.left || second.right <= first.left ? "beside" : "stacked";
}

// Which object a key chooses: by its number, or an arrow that points to it where they stand beside each other.
function sideOf(key) {
  if (key === "1" || key === "2") return key === "1" ? "first" : "second";
  if (!["ArrowLeft", "ArrowRight"].includes(key) || layoutNow() !== "beside") return undefined;
  const [first, second] = document.querySelectorAll(".sides .reading");
  const isFirstLeft = first.getBoundingClientRect().left < second.getBoundingClientRect().left;
  return (key === "ArrowLeft") === isFirstLeft ? "first" : "second";
}

if (keysWanted) {
  keysWanted.checked = window.localStorage.getItem(KEYS_UNWANTED) !== "1";
  document.documentElement.classList.toggle("without-keys", !keysWanted.checked);
  keysWanted.addEventListener("change", () => {
    window.localStorage.setItem(KEYS_UNWANTED, keysWanted.checked ? "0" : "1");
    document.documentElement.classList.toggle("without-keys", !keysWanted.checked);
  });
}
