// The setup form: one more question on a click; what the chosen space, move and rule do not use is put aside.
"use strict";

const questions = document.getElementById("questions");
const total = document.getElementById("id_questions-TOTAL_FORMS");
const add = document.getElementById("add-question");
const most = Number(document.getElementById("id_questions-MAX_NUM_FORMS").value);

add.addEventListener("click", () => {
  const index = Number(total.value);
  const template = document.getElementById("empty-question").innerHTML;
  questions.insertAdjacentHTML("beforeend", template.replaceAll("__prefix__", String(index)));
  total.value = String(index + 1);
  add.disabled = index + 1 >= most;
  document.getElementById(`id_questions-${index}-question`).focus();
  putAside();
});

function chosen(name) {
  return document.querySelector(`input[name="${name}"]:checked`)?.value;
}

function show(part, isUsed) {
  part.hidden = !isUsed;
  // A field that is put aside must not stop the form from being sent because it is empty.
  part.querySelectorAll("input, select, textarea").forEach((field) => { field.disabled = part.hidden; });
}

function putAside() {
  const space = chosen("space");
  document.querySelectorAll(".space").forEach((section) => show(section, section.dataset.space === space));
  const rule = chosen("rule-kind") ?? "n-vote";
  // Where nobody is asked; the parts inside of it come after it.
  const asks = rule === "n-vote" || rule === "pointwise";
  document.querySelectorAll(".judges-only").forEach((part) => show(part, asks));
  document.querySelectorAll(".votes-only").forEach((part) => show(part, rule === "n-vote"));
  document.querySelectorAll(".ratings-only").forEach((part) => show(part, rule === "pointwise"));
  for (const kind of ["base", "score", "quest"]) {
    document.querySelectorAll(`.${kind}-only`).forEach((part) => show(part, rule === kind));
  }
  document.getElementById("id_rule-second").closest(".field").hidden = document.getElementById("id_rule-score_form").value !== "mars";
  document.getElementById("id_rule-beta").closest(".field").hidden = document.getElementById("id_rule-form").value !== "power";
  document.querySelectorAll(".question-block").forEach((block) => {
    const source = block.querySelector("select[name$=-source]");
    if (!source) return;
    // As `console/forms/questions.py` writes it.
    for (const part of block.querySelectorAll(".model-only")) part.hidden = source.value === "";
  });
  putPanelAside(rule === "n-vote" && chosen("panel-kind") === "panel");
  const move = chosen("catalog-move");
  document.getElementById("id_catalog-fresh_share").closest(".field").hidden = move !== "mixture";
  document.getElementById("id_catalog-neighbours").closest(".field").hidden = move === "independent";
  document.querySelectorAll(".space").forEach((section) => {
    if (!section.hidden) putWalkAside(section, section.dataset.space);
  });
}

// With a panel each person answers a pair once, so there is nothing to choose where people answer.
function putPanelAside(isPanel) {
  document.querySelectorAll(".panel-only").forEach((part) => show(part, isPanel));
  document.querySelectorAll(".question-block").forEach((block) => {
    const ofPeople = (block.querySelector("select[name$=-source]")?.value ?? "") === "";
    const budget = block.querySelector("[name$=-budget]");
    const order = block.querySelector("[name$=-order]");
    if (isPanel && ofPeople) {
      budget.value = "1";
      order.value = "random";
    }
    budget.readOnly = isPanel && ofPeople;
    order.closest(".field").hidden = isPanel && ofPeople;
  });
}

function putWalkAside(section, space) {
  const field = (name) => section.querySelector(`[name="${space}-${name}"]`)?.closest(".field");
  const [distance, walk, steps] = ["distance", "walk", "warm_up"].map(field);
  if (!distance) return;
  const value = (name) => section.querySelector(`select[name="${space}-${name}"]`)?.value;
  const canWalk = (value("convention") ?? "exact") === "exact" && (space !== "model-texts" || value("cut") === "limit");
  const isLocal = canWalk && (space !== "catalog" || chosen("catalog-move") !== "independent");
  // A warm-up counts votes, and compares what can be measured of the objects. Of a list of images nothing can.
  // Nor does it weigh the votes of a panel, whose panelists differ.
  const canWarmUp = (chosen("rule-kind") ?? "n-vote") === "n-vote" && chosen("panel-kind") !== "panel" && (space !== "catalog" || chosen("catalog-objects") !== "images");
  show(distance, isLocal && canWarmUp);
  show(walk, isLocal);
  const warmsUp = isLocal && canWarmUp && chosen(`${space}-distance`) === "warm-up";
  show(steps, warmsUp);
}

document.querySelector("form.setup").addEventListener("change", putAside);
// The browser names a field that is wrong only where it can be seen.
document.querySelector("form.setup").addEventListener("invalid", (event) => {
  for (let fold = event.target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}, true);
putAside();

// What the votes come to changes its height. While a button is pressed it stays, or the press would miss the button.
let isPressed = false;
document.addEventListener("pointerdown", () => { isPressed = true; });
for (const released of ["pointerup", "pointercancel"]) document.addEventListener(released, () => { isPressed = false; });
document.body.addEventListener("htmx:beforeSwap", (event) => {
  if (!isPressed) return;
  event.detail.shouldSwap = false;
  document.addEventListener("pointerup", () => htmx.trigger("#votes-estimate", "change"), { once: true });
});
