// Buttons that copy: the field beside them, or the completion code.
"use strict";

// Without scripts there is no button that does nothing.
document.documentElement.classList.add("scripted");

document.querySelectorAll("[data-copy]").forEach((button) => {
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copy);
    field.select();
    await navigator.clipboard.writeText(field.value);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
});

document.addEventListener("click", async (event) => {
  const copier = event.target.closest(".copy-code");
  if (!copier) return;
  const code = document.querySelector("code.completion");
  window.getSelection().selectAllChildren(code);
  let told = copier.dataset.selected;
  try {
    await navigator.clipboard.writeText(code.textContent);
    told = copier.dataset.copied;
  } catch {
    // No clipboard, as on a page without https, or nobody allows it: what is selected can be copied as anywhere.
  }
  copier.nextElementSibling.textContent = told;
});
