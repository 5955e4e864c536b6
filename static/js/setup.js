// The setup form: one more question on a click; fields that the chosen move does not use are put aside.
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
});

function putAside() {
  const move = document.querySelector("input[name=move]:checked")?.value;
  document.getElementById("id_fresh_share").closest(".field").hidden = move !== "mixture";
  document.getElementById("id_neighbours").closest(".field").hidden = move === "independent";
}

document.querySelectorAll("input[name=move]").forEach((radio) => radio.addEventListener("change", putAside));
putAside();
