// Two pictures are enlarged together, and moved together (scrolling.js). Each pair begins whole.
"use strict";

const LEVELS = [1, 1.5, 2, 3, 4, 6];
const PAN_SHARE = 0.4;
const ZOOMS = { "+": 1, "=": 1, "-": -1, 0: 0 };
const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
// A hand that presses is never quite still.
const DRAG_PX = 5;

const zoomBar = document.getElementById("zooming");
let level = 0;
let zoomedLease = null;

function frames() {
  return [...document.querySelectorAll(".sides .zoomable")];
}

function zoomTo(next) {
  const ratio = LEVELS[next] / LEVELS[level];
  level = next;
  for (const frame of frames()) {
    // What is in the middle stays there.
    const across = frame.scrollLeft + frame.clientWidth / 2, down = frame.scrollTop + frame.clientHeight / 2;
    frame.style.setProperty("--zoom", LEVELS[level]);
    frame.scrollTo({ left: across * ratio - frame.clientWidth / 2, top: down * ratio - frame.clientHeight / 2, behavior: "instant" });
  }
  showLevel();
}

// A step of 1 or -1; 0 shows all of the pictures again.
function zoomBy(step) {
  if (frames().length) zoomTo(step ? Math.max(0, Math.min(LEVELS.length - 1, level + step)) : 0);
}

function showLevel() {
  zoomBar.hidden = !frames().length;
  document.querySelector(".sides")?.classList.toggle("zoomed", level > 0);
  document.getElementById("zoom-level").textContent = `${100 * LEVELS[level]} %`;
  document.getElementById("panning").hidden = level === 0;
  // Not disabled: a button that has the focus keeps it.
  zoomBar.querySelector("[data-zoom='-1']").setAttribute("aria-disabled", String(level === 0));
  zoomBar.querySelector("[data-zoom='1']").setAttribute("aria-disabled", String(level === LEVELS.length - 1));
  offerLink();
}

function pan(key) {
  const [across, down] = WAYS[key], { clientWidth = 0, clientHeight = 0 } = frames()[0] ?? {};
  return moveBy(across * PAN_SHARE * clientWidth, down * PAN_SHARE * clientHeight);
}

zoomBar.addEventListener("click", (event) => {
  const { zoom, pan: key } = event.target.closest("button")?.dataset ?? {};
  if (zoom) zoomBy(Number(zoom));
  if (key) pan(key);
});

document.addEventListener("keydown", (event) => {
  if (event.shiftKey && WAYS[event.key] && level > 0 && pan(event.key)) event.preventDefault();
  else if (event.key in ZOOMS && isSingleKey(event)) zoomBy(ZOOMS[event.key]);
});

// A new pair is whole; the same one, sent once more, is as it was, before it is scrolled to where it was read.
document.addEventListener("htmx:wsBeforeMessage", () => { zoomedLease = leaseShown(); });
document.addEventListener("htmx:wsAfterMessage", () => {
  if (zoomedLease !== leaseShown()) level = 0;
  for (const frame of frames()) frame.style.setProperty("--zoom", LEVELS[level]);
  showLevel();
}, { capture: true });

// What is enlarged is dragged, by a mouse or a finger. Whoever cannot drag has buttons, keys and a wheel.
let drag = null;
document.addEventListener("pointerdown", (event) => {
  const frame = event.target.closest(".sides.zoomed .option")?.querySelector(".zoomable");
  drag = frame && event.isPrimary && event.button === 0
    ? { frame, x: event.clientX, y: event.clientY, left: frame.scrollLeft, top: frame.scrollTop, isFar: false } : null;
});
document.addEventListener("pointermove", (event) => {
  if (!drag || !(event.buttons & 1)) return;
  const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
  drag.isFar ||= Math.hypot(x, y) > DRAG_PX;
  if (drag.isFar) drag.frame.scrollTo({ left: drag.left - x, top: drag.top - y, behavior: "instant" });
});
// A click may follow at once. No click follows a drag by finger, or one that ends outside of the window: then the next
// one is a vote.
document.addEventListener("pointerup", () => {
  const ended = drag;
  setTimeout(() => { if (drag === ended) drag = null; });
});
document.addEventListener("pointercancel", () => { drag = null; });
document.addEventListener("wheel", (event) => {
  const frame = event.target.closest(".sides.zoomed .option")?.querySelector(".zoomable");
  if (!frame || event.ctrlKey) return;
  const before = [frame.scrollLeft, frame.scrollTop];
  frame.scrollBy({ left: event.deltaX, top: event.deltaY, behavior: "instant" });
  // At an end, the wheel is the page's.
  if (frame.scrollLeft !== before[0] || frame.scrollTop !== before[1]) event.preventDefault();
}, { passive: false });
document.addEventListener("dragstart", (event) => { if (event.target.closest(".sides")) event.preventDefault(); });
// The end of a drag is no vote.
document.addEventListener("click", (event) => {
  if (!drag?.isFar) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  drag = null;
}, { capture: true });

showLevel();
