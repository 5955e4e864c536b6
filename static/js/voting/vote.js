// One response at a time: it goes out with its times, and what comes back takes the place of the pair.
"use strict";

// Nobody judges a pair in less: the second half of a double click, meant for the pair before. A report that a pair is
// not shown is no judgement.
const TOO_SOON_MS = 250;

const elapsed = document.getElementById("elapsed-ms");
const hidden = document.getElementById("hidden-ms");
let shownScreen = screenKey();
let askedBefore = document.getElementById("question")?.textContent;

// With two questions in turn, people go on answering the old one unless they see that it has changed.
function markChangedQuestion() {
  const question = document.getElementById("question");
  if (!question) return;
  question.classList.toggle("changed", Boolean(askedBefore) && question.textContent !== askedBefore);
  askedBefore = question.textContent;
}

// A second click before the answer would repeat the same vote; the server knows it by its key, the page drops it.
form.addEventListener("submit", (event) => {
  const now = performance.now();
  const isTooSoon = now - shownAt < TOO_SOON_MS && event.submitter?.value !== "not-shown";
  const isChanged = ["first", "second"].includes(event.submitter?.value) && !isAsSent();
  if (isChanged || form.dataset.busy || form.querySelector(".sides.loading") || isTooSoon) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  if (!sendsHeld) {
    elapsed.value = String(Math.round(now - shownAt));
    hidden.value = String(Math.round(hiddenUntil(now)));
  }
  if (hold(event.submitter)) {
    event.preventDefault();
    event.stopImmediatePropagation();
    return;
  }
  form.elements.layout.value = layoutShown;
  form.elements.translated.value = isTranslated();
  form.dataset.busy = "1";
  if (event.submitter) event.submitter.classList.add("chosen");
  // Without a socket the browser sends the form itself; htmx must not take it.
  if (withoutSocket) event.stopImmediatePropagation();
}, { capture: true });

document.addEventListener("htmx:wsBeforeMessage", () => {
  form.dataset.hadFocus = form.contains(document.activeElement) ? "1" : "";
});

document.addEventListener("htmx:wsAfterMessage", () => {
  showBothAtOnce();
  if (!isAnswered()) return;
  delete form.dataset.busy;
  if (screenKey() !== shownScreen) {
    shownScreen = screenKey();
    window.scrollTo({ top: 0 });
    markChangedQuestion();
  }
  // The swap took the focused element away; without this a screen reader would start at the top of the page.
  if (form.dataset.hadFocus) form.querySelector("h1")?.focus({ preventScroll: true });
});

showBothAtOnce();
