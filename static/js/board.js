// The campaign page: a reload when the campaign's status changes under the page.
"use strict";

const start = document.getElementById("start");
const connection = document.getElementById("connection");
// Of a campaign that has started, this part is swapped in; of a draft, the whole board is.
const now = () => (document.getElementById("board-now") || document.getElementById("board")).dataset;
const status = now().status;

document.addEventListener("htmx:wsAfterMessage", (event) => {
  const hasStarted = !document.getElementById("board-now") && event.detail.message.includes('id="board-now"');
  if (hasStarted || now().status !== status) window.location.reload();
  if (start) start.disabled = !now().ready;
});

document.addEventListener("htmx:wsOpen", () => { connection.hidden = true; });
document.addEventListener("htmx:wsClose", () => { connection.hidden = false; });
