// Where voters may undo, each choice waits here before it is sent: every one for as long, whatever it will settle.
"use strict";

const HELD_MS = 2000;
const held = document.getElementById("held");
let heldChoice = null;
let sendsHeld = false;

// Whether a choice was taken to be sent later.
function hold(submitter) {
  if (!held || sendsHeld || !["first", "second"].includes(submitter?.value)) return false;
  const screen = screenKey();
  form.dataset.busy = "1";
  submitter.classList.add("chosen");
  held.hidden = false;
  heldChoice = {
    submitter,
    timer: setTimeout(() => {
      letGo();
      // Another pair may stand there by now: the choice was not for that one.
      if (screenKey() === screen) sendNow(submitter);
    }, HELD_MS),
  };
  return true;
}

// Sends a choice with the times at which it was made.
function sendNow(submitter) {
  delete form.dataset.busy;
  sendsHeld = true;
  form.requestSubmit(submitter);
  sendsHeld = false;
}

function letGo() {
  clearTimeout(heldChoice.timer);
  heldChoice.submitter.classList.remove("chosen");
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
