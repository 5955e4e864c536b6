// The campaign page: copying the link, and a reload when the campaign's status changes under the page.
"use strict";

document.querySelectorAll("[data-copy]").forEach((button) => {
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copy);
    field.select();
    await navigator.clipboard.writeText(field.value);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
});

const start = document.getElementById("start");
const connection = document.getElementById("connection");
// The page of a person copies a code, and has no board.
const status = document.getElementById("board")?.dataset.status;

document.addEventListener("htmx:wsAfterMessage", () => {
  const board = document.getElementById("board").dataset;
  if (board.status !== status) window.location.reload();
  if (start) start.disabled = !board.ready;
});

document.addEventListener("htmx:wsOpen", () => { connection.hidden = true; });
document.addEventListener("htmx:wsClose", () => { connection.hidden = false; });
