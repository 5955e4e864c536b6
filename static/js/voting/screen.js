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

function button(choice) {
  return form.querySelector(`button[name=choice][value=${choice}]`);
}
