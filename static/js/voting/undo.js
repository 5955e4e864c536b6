// Where voters may undo, each choice waits here before it is sent: every one for as long, whatever it will settle.
"use strict";

const HELD_MS = 2000;
const held = document.getElementById("held");
let heldChoice = null;
let sendsHeld = false;

// Whether a choice was taken to be sent later.
function hold(submitter) {
  if (!held || sendsHeld) return false;
  // One of a pair that has been taken away, or was sent once more.
  if (heldChoice) letGo();
  const choice = submitter?.value;
  if (!["first", "second"].includes(choice)) return false;
  const screen = screenKey();
  form.dataset.busy = "1";
  submitter.classList.add("chosen");
  held.hidden = false;
  heldChoice = {
    choice,
    timer: setTimeout(() => {
      letGo();
      // Another pair may stand there by now: the choice was not for that one.
      if (screenKey() === screen) sendNow(button(choice));
    }, HELD_MS),
  };
  return true;
}

// Sends a choice with the times at which it was made. A click: htmx may remember a button that is gone.
function sendNow(submitter) {
  delete form.dataset.busy;
  sendsHeld = true;
  submitter?.click();
  sendsHeld = false;
}

function letGo() {
  clearTimeout(heldChoice.timer);
  button(heldChoice.choice)?.classList.remove("chosen");
  heldChoice = null;
  held.hidden = true;
  delete form.dataset.busy;
}

held?.addEventListener("click", (event) => {
  if (event.target.closest("#undo") && heldChoice) letGo();
});

document.addEventListener("keydown", (event) => {
  if (["u", "U"].includes(event.key) && heldChoice && isSingleKey(event)) letGo();
});
