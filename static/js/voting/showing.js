// Both files of a pair appear together, pictures or recordings, or the page says that one of them cannot be shown.
"use strict";

// A file that does not load is asked for once more before anybody is told.
const LOAD_AGAIN_MS = 1000;
// A browser that saves data loads nothing of a recording until it is played.
const RECORDING_PATIENCE_MS = 3000;
const FILES = ".option :is(img, audio)";
const notShown = document.getElementById("not-shown");

// A file that was on the screen before is in the browser's cache, and would stand there before the other: the order
// would tell which object the chain is in. So both appear together, and the stop watch starts then.
async function showBothAtOnce(isSecondTime = false) {
  startWatch();
  tellWhetherShown(true);
  const files = [...form.querySelectorAll(FILES)];
  if (!files.length) return;
  const key = screenKey();
  const sides = form.querySelector(".sides");
  sides.classList.add("loading");
  await Promise.allSettled(files.map(loaded));
  if (screenKey() !== key) return;
  const broken = files.filter(isBroken);
  if (broken.length && !isSecondTime) {
    setTimeout(() => { if (screenKey() === key) loadAgain(); }, LOAD_AGAIN_MS);
    return;
  }
  sides.classList.remove("loading");
  tellWhetherShown(!broken.length);
  startWatch();
}

// A promise that is settled once the file can be shown, or cannot.
function loaded(file) {
  return file.matches("img") ? file.decode() : recordingLoaded(file);
}

function recordingLoaded(recording) {
  return new Promise((settle) => {
    if (recording.readyState > 0 || recording.error) settle();
    ["loadedmetadata", "error"].forEach((event) => recording.addEventListener(event, settle, { once: true }));
    setTimeout(settle, RECORDING_PATIENCE_MS);
  });
}

function isBroken(file) {
  return file.matches("img") ? file.complete && file.naturalWidth === 0 : file.error !== null;
}

function loadAgain() {
  form.querySelectorAll(FILES).forEach((file) => { if (isBroken(file)) file.src = file.src; });
  showBothAtOnce(true);
}

// Half a pair is no question: it takes no vote, and whoever cannot see it says so. What cannot be skipped tells by words
// what to choose.
function tellWhetherShown(isWhole) {
  const isShown = isWhole || !button("skip");
  const hadFocus = notShown.contains(document.activeElement);
  const chose = document.activeElement.closest("button:is(.option, .choose)");
  notShown.hidden = isShown;
  form.querySelectorAll("button:is(.option, .choose)").forEach((option) => { option.disabled = !isShown; });
  if (isShown && hadFocus) document.getElementById("question")?.focus({ preventScroll: true });
  if (!isShown && chose) document.getElementById("load-again").focus();
}

document.getElementById("load-again").addEventListener("click", loadAgain);

// Of files that are asked for later, such as pictures with marks. Errors do not bubble.
form.addEventListener("error", (event) => {
  const isLoading = form.querySelector(".sides.loading");
  if (!isLoading && event.target.matches?.(FILES)) tellWhetherShown(false);
}, { capture: true });
