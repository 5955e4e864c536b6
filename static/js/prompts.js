// The prompts of the setup form: presets fill the fields, and what the model gets is shown while one writes.
"use strict";

// So that not every letter is a request.
const PAUSE_MS = 400;
let pause = 0;

function lookAgain() {
  clearTimeout(pause);
  pause = setTimeout(() => {
    document.querySelectorAll("details[open] .prompt-preview").forEach((part) => {
      if (part.checkVisibility()) htmx.trigger(part, "preview");
    });
  }, PAUSE_MS);
}

function fill(select) {
  if (!select.value) return;
  const preset = select.selectedOptions[0].dataset;
  const block = select.closest(".question-block");
  const field = (name) => block.querySelector(`[name$=".${name}"]`);
  field("prompt.system").value = preset.system;
  field("prompt.user").value = preset.user;
  if (preset.question) field("question").value = preset.question;
}

const setup = document.querySelector("form.setup");
setup.addEventListener("change", (event) => {
  if (event.target.dataset.preset) fill(event.target);
  lookAgain();
});
setup.addEventListener("input", lookAgain);
// This event does not bubble.
setup.addEventListener("toggle", (event) => { if (event.target.querySelector(".own-prompt")) lookAgain(); }, true);
// No submit button: the Enter key presses the first one of a form.
setup.addEventListener("click", (event) => {
  if (!event.target.dataset.try) return;
  const then = Object.assign(document.createElement("input"), { type: "hidden", name: "try", value: event.target.dataset.try });
  setup.append(then);
  setup.requestSubmit();
  then.remove();
});
lookAgain();
