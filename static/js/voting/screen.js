// What the voting page shows. The other scripts of a vote come after this one.
"use strict";

const form = document.getElementById("response-form");

function leaseKey() {
  return form.elements.lease ? form.elements.lease.value : "";
}

// A pair, by its lease, or the reason why there is none.
function screenKey() {
  return leaseKey() || document.getElementById("panel").className;
}

// What is judged, word by word.
function judgedIn(root) {
  return [...root.querySelectorAll(".judged")].map((each) => each.textContent).join("\u0000");
}

// A browser that translates a page changes its words. What was sent stands once more in a template.
function isAsSent() {
  const sent = document.getElementById("as-sent");
  return !sent || !skipButton() || judgedIn(sent.content) === judgedIn(form);
}

// Whether the words around a pair are translated; "" where that cannot be seen.
function isTranslated() {
  const skip = skipButton();
  return skip ? String(Number(!skip.textContent.trim().startsWith(skip.dataset.sent))) : "";
}

// What says by words what to choose has none.
function skipButton() {
  return document.getElementById("skip");
}

function button(choice) {
  if (choice === "skip") return skipButton();
  return form.querySelector(`button[name=choice][value=${choice}]`);
}
