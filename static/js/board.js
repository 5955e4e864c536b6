// The campaign page: a reload when the campaign's status changes under the page.
"use strict";

const start = document.getElementById("start");
const connection = document.getElementById("connection");
const status = document.getElementById("board").dataset.status;

document.addEventListener("htmx:wsAfterMessage", () => {
  const board = document.getElementById("board").dataset;
  if (board.status !== status) window.location.reload();
  if (start) start.disabled = !board.ready;
});

document.addEventListener("htmx:wsOpen", () => { connection.hidden = true; });
document.addEventListener("htmx:wsClose", () => { connection.hidden = false; });
