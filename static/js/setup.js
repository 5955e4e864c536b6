// What the votes come to changes its height. While a button is pressed it stays, or the press would miss the button.
"use strict";

let isPressed = false;
document.addEventListener("pointerdown", () => { isPressed = true; });
for (const released of ["pointerup", "pointercancel"]) document.addEventListener(released, () => { isPressed = false; });
document.body.addEventListener("htmx:beforeSwap", (event) => {
  if (!isPressed) return;
  event.detail.shouldSwap = false;
  document.addEventListener("pointerup", () => htmx.trigger("#votes-estimate", "change"), { once: true });
});
