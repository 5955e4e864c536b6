// A file that is dropped on the fields of a list is taken as if it were chosen. One that the server has kept is not sent again.
"use strict";

const chosen = document.querySelector("[name='space.catalog.file']");
const zone = chosen?.closest(".variant-fields");

for (const kind of ["dragover", "drop"]) {
  zone?.addEventListener(kind, (event) => {
    // A text that is dragged belongs in the box.
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    if (kind !== "drop") return;
    chosen.files = event.dataTransfer.files;
    chosen.dispatchEvent(new Event("change", { bubbles: true }));
  });
}
document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.target.id === "list-reply" && event.target.querySelector("[name^='kept-']")) chosen.value = "";
});
