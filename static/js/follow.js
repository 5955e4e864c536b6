// A page that follows a campaign: a line that says so while the connection is lost.
"use strict";

const connection = document.getElementById("connection");

document.addEventListener("htmx:wsOpen", () => { connection.hidden = true; });
document.addEventListener("htmx:wsClose", () => { connection.hidden = false; });
