// Shows what differs between the two objects when asked to: words of texts, atoms of molecules. The browser remembers.
// Loaded before vote.js, which then waits for the pictures that this asks for.
"use strict";

const DIFFERENCES = "prefmh-differences";

function differencesWanted() {
  return window.localStorage.getItem(DIFFERENCES) === "1";
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
  document.querySelector(".sides").classList.toggle("differing", wanted);
  document.querySelectorAll(".option picture source").forEach((source) => {
    source.srcset = marked(source.getAttribute("srcset"), wanted);
  });
  document.querySelectorAll(".option picture img").forEach((picture) => {
    picture.src = marked(picture.getAttribute("src"), wanted);
  });
}

function toggleDifferences() {
  window.localStorage.setItem(DIFFERENCES, differencesWanted() ? "0" : "1");
  showDifferences();
}

document.addEventListener("click", (event) => {
  if (event.target.closest("#differences")) toggleDifferences();
});
document.addEventListener("keydown", (event) => {
  const wanted = document.getElementById("keys-wanted").checked;
  const plain = wanted && !(event.ctrlKey || event.metaKey || event.altKey || event.repeat);
  if (plain && event.key.toLowerCase() === "d" && document.getElementById("differences")) toggleDifferences();
});
document.addEventListener("htmx:wsAfterMessage", showDifferences);
showDifferences();
