// Both files of a pair appear together, pictures or recordings, or the page says that one of them cannot be shown.
"use strict";

// A file that does not load is asked for once more before anybody is told.
const LOAD_AGAIN_MS = 1000;
// A browser that saves data loads nothing of a recording until it is played.
const RECORDING_PATIENCE_MS = 3000;
const FILES = ".option :is(img, audio)";
const notShown = document.getElementById("not-shown");
const notAsSent = document.getElementById("not-as-sent");
// What is shown now replaces what was shown before, the same pair in new elements too: only the last one counts.
let shownTimes = 0;
// The screen that has been seen whole. Its stop watch runs on when the server sends it again.
let seenWhole = null;

// A file that was on the screen before is in the browser's cache, and would stand there before the other: the order
// would tell which object the chain is in. So both appear together, and the stop watch starts then.
async function showBothAtOnce(isSecondTime = false) {
  shownTimes += 1;
  const mine = shownTimes;
  startWatchOf(screenKey());
  tellWhetherShown(true);
  const files = [...form.querySelectorAll(FILES)];
  const broken = files.length ? await brokenOf(files) : [];
  if (mine !== shownTimes) return;
  if (broken.length && !isSecondTime) {
    setTimeout(() => { if (mine === shownTimes) loadAgain(); }, LOAD_AGAIN_MS);
    return;
  }
  form.querySelector(".sides")?.classList.remove("loading");
  tellWhetherShown(!broken.length);
  startWatchOf(screenKey());
  if (!broken.length) seenWhole = screenKey();
}

function startWatchOf(screen) {
  if (screen !== seenWhole) startWatch();
}

// Waits for all files, out of sight, and returns those that cannot be shown.
async function brokenOf(files) {
  form.querySelector(".sides").classList.add("loading");
  await Promise.allSettled(files.map(loaded));
  return files.filter(isBroken);
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
  seenWhole = null;
  form.querySelectorAll(FILES).forEach((file) => { if (isBroken(file)) file.src = file.src; });
  showBothAtOnce(true);
}

// Half a pair is no question: it takes no vote, and whoever cannot see it says so. What cannot be skipped tells by words
// what to choose.
function tellWhetherShown(isWhole) {
  const isShown = isWhole || !button("skip");
  const isSame = isAsSent();
  const hadFocus = notShown.contains(document.activeElement);
  const chose = document.activeElement.closest("button:is(.option, .choose)");
  notShown.hidden = isShown;
  notAsSent.hidden = isSame;
  // Given back as if nobody had been asked.
  if (button("skip")) button("skip").value = isSame ? "skip" : "changed";
  const unheard = document.getElementById("unheard");
  if (unheard) unheard.hidden = areHeard();
  const isOffered = isShown && isSame && areHeard();
  form.querySelectorAll("button:is(.option, .choose)").forEach((option) => { option.disabled = !isOffered; });
  if (isShown && hadFocus) document.getElementById("question")?.focus({ preventScroll: true });
  if (!isShown && chose) document.getElementById("load-again").focus();
}

document.getElementById("load-again").addEventListener("click", loadAgain);
document.getElementById("load-page").addEventListener("click", () => window.location.reload());
// Pages are translated after they are shown, too, and back.
new MutationObserver(() => { if (notAsSent.hidden !== isAsSent()) tellWhetherShown(notShown.hidden); })
  .observe(form, { subtree: true, childList: true, characterData: true });

// Of files that are asked for later, such as pictures with marks. Errors do not bubble.
form.addEventListener("error", (event) => {
  const isLoading = form.querySelector(".sides.loading");
  if (!isLoading && event.target.matches?.(FILES)) tellWhetherShown(false);
}, { capture: true });
