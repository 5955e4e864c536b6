// Buttons that copy: the field beside them, or the completion code.
"use strict";

// Without scripts there is no button that does nothing.
document.documentElement.classList.add("scripted");

// Copied in the older way: the newer one is missing on a page without https.
document.querySelectorAll("[data-copy]").forEach((button) => {
  button.addEventListener("click", () => {
    document.getElementById(button.dataset.copy).select();
    button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
});

document.addEventListener("click", (event) => {
  const copier = event.target.closest(".copy-code");
  if (!copier) return;
  window.getSelection().selectAllChildren(document.querySelector("code.completion"));
  // What is selected can be copied as anywhere.
  copier.nextElementSibling.textContent = document.execCommand("copy") ? copier.dataset.copied : copier.dataset.selected;
});
