// Shows what differs between the two objects when asked to: words of texts, atoms of molecules. The browser remembers it
// until the tab is closed. Loaded before the pictures are waited for, since it asks for others.
"use strict";

const DIFFERENCES = "prefmh-differences";

function differencesWanted() {
  return window.sessionStorage.getItem(DIFFERENCES) === "1";
}

function marked(address, wanted) {
  const url = new URL(address, window.location.href);
  if (wanted) url.searchParams.set("marked", "");
  else url.searchParams.delete("marked");
  return url.pathname + url.search;
}

function showDifferences() {
  const toggle = document.getElementById("differences");
  if (!toggle) return;
  const wanted = differencesWanted();
  toggle.hidden = false;
  toggle.setAttribute("aria-pressed", String(wanted));
  const sides = document.querySelector(".sides");
  if (sides.classList.contains("differing") === wanted) return;
  sides.classList.toggle("differing", wanted);
  document.querySelectorAll(".option picture source").forEach((source) => {
    source.srcset = marked(source.getAttribute("srcset"), wanted);
  });
  document.querySelectorAll(".option picture img").forEach((picture) => {
    picture.src = marked(picture.getAttribute("src"), wanted);
  });
}

function toggleDifferences() {
  window.sessionStorage.setItem(DIFFERENCES, differencesWanted() ? "0" : "1");
  showDifferences();
}

document.addEventListener("click", (event) => {
  if (event.target.closest("#differences")) toggleDifferences();
});
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() === "d" && isSingleKey(event) && document.getElementById("differences")) toggleDifferences();
});
document.addEventListener("htmx:wsAfterMessage", showDifferences);
showDifferences();
