// Two long objects scroll together: the other one follows by the same fraction of its own length. So do two pictures that
// are enlarged.
"use strict";

const SCROLLS = ".sides .reading, .sides .zoomable";
const UNLINKED = "prefmh-unlinked";
const LINE_PX = 48;
// What a key moves, as shares of what can be seen, or lines.
const MOVES = {
  ArrowUp: { lines: -1 }, ArrowDown: { lines: 1 }, PageUp: { pages: -0.85 }, PageDown: { pages: 0.85 },
  Home: { pages: -Infinity }, End: { pages: Infinity },
};

const linked = document.getElementById("scroll-together");
// Where this script has put an element: when that is told as a scroll, nobody has moved it.
const put = new WeakMap();

function scrollers() {
  return [...document.querySelectorAll(SCROLLS)].filter((each) => roomIn(each, "top") > 1 || roomIn(each, "left") > 1);
}

// How far an element can scroll. From right to left, positions go down from 0.
function roomIn(element, side) {
  return side === "top" ? element.scrollHeight - element.clientHeight : element.scrollWidth - element.clientWidth;
}

function follow(moved) {
  const down = fraction(moved.scrollTop, roomIn(moved, "top")), across = fraction(moved.scrollLeft, roomIn(moved, "left"));
  for (const other of scrollers()) {
    if (other === moved) continue;
    other.scrollTo({ top: down * roomIn(other, "top"), left: across * roomIn(other, "left"), behavior: "instant" });
    put.set(other, [other.scrollTop, other.scrollLeft]);
  }
}

function fraction(position, room) {
  return room > 0 ? position / room : 0;
}

document.addEventListener("scroll", (event) => {
  const moved = event.target;
  if (!(moved instanceof Element) || !moved.matches(SCROLLS)) return;
  const [top, left] = put.get(moved) ?? [NaN, NaN];
  const isOurs = Math.abs(moved.scrollTop - top) < 1 && Math.abs(moved.scrollLeft - left) < 1;
  put.delete(moved);
  if (!isOurs && linked.checked) follow(moved);
}, { capture: true, passive: true });

// What is meant when no object is named: of two that are linked, the one with the longer way; of two that are not, the
// one with the focus, or both.
function meant() {
  const long = scrollers();
  if (!linked.checked) {
    const focused = long.filter((each) => each.closest(".reading").contains(document.activeElement));
    return focused.length ? focused : long;
  }
  return long.sort((one, other) => roomIn(other, "top") - roomIn(one, "top")).slice(0, 1);
}

// Returns whether anything moved: at an end, a key is the page's.
function moveBy(across, down) {
  return meant().map((each) => {
    const before = [each.scrollTop, each.scrollLeft];
    each.scrollTo({ top: each.scrollTop + within(down, each), left: each.scrollLeft + across, behavior: "instant" });
    return each.scrollTop !== before[0] || each.scrollLeft !== before[1];
  }).some(Boolean);
}

function within(way, element) {
  return Math.max(-element.scrollHeight, Math.min(element.scrollHeight, way));
}

document.addEventListener("keydown", (event) => {
  const move = MOVES[event.key];
  if (!move || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  // Whatever has the focus and uses this key itself: a field, or a box that scrolls.
  if (document.activeElement.closest("input:not([type=checkbox]), textarea, select, .context")) return;
  const seen = meant()[0]?.clientHeight ?? 0;
  if (moveBy(0, move.lines ? move.lines * LINE_PX : move.pages * seen)) event.preventDefault();
});

// Only where both are longer than what can be seen of them is there anything to link.
function offerLink() {
  offerDifferences();
  document.getElementById("linking").hidden = scrollers().length < 2;
}

linked.checked = window.sessionStorage.getItem(UNLINKED) !== "1";
linked.addEventListener("change", () => {
  window.sessionStorage.setItem(UNLINKED, linked.checked ? "0" : "1");
  if (linked.checked && scrollers().length) follow(meant()[0]);
});

// Of long objects, the parts that one sees may be equal: a press scrolls both to where they differ next.
const nextDifference = document.getElementById("next-difference");
let differenceShown = -1;

// The parts of each object that the other one does not have.
function differences() {
  const boxes = [...document.querySelectorAll(".sides .reading")];
  const blocks = boxes.map((box) => [...box.querySelectorAll(".markdown > *")]);
  return boxes.map((box, at) => {
    const others = new Set(blocks[1 - at].map((block) => block.textContent));
    const marks = [...box.querySelectorAll(".text .changed"), ...blocks[at].filter((block) => !others.has(block.textContent))];
    return { box, marks };
  });
}

function scrollToDifference() {
  if (!differencesWanted()) toggleDifferences();
  const found = differences();
  differenceShown = (differenceShown + 1) % Math.max(...found.map(({ marks }) => marks.length));
  for (const { box, marks } of found) {
    const mark = marks[Math.min(differenceShown, marks.length - 1)];
    if (!mark) continue;
    const above = mark.getBoundingClientRect().top - box.getBoundingClientRect().top;
    box.scrollTo({ top: box.scrollTop + above - LINE_PX, behavior: "instant" });
    put.set(box, [box.scrollTop, box.scrollLeft]);
    // What the other one lacks stands where it would stand in it.
    if (linked.checked && found.some((each) => !each.marks.length)) follow(box);
  }
}

function offerDifferences() {
  nextDifference.hidden = !scrollers().length || !differences().some(({ marks }) => marks.length);
}

nextDifference.addEventListener("click", scrollToDifference);

// The same pair may be sent once more, when a lost connection is back: it stays where it was read.
let read = null;
document.addEventListener("htmx:wsBeforeMessage", () => {
  read = { lease: leaseShown(), at: [...document.querySelectorAll(SCROLLS)].map((each) => [each.scrollTop, each.scrollLeft]) };
});
document.addEventListener("htmx:wsAfterMessage", () => {
  if (read?.lease !== leaseShown()) differenceShown = -1;
  else {
    document.querySelectorAll(SCROLLS).forEach((each, index) => {
      const [top, left] = read.at[index] ?? [0, 0];
      each.scrollTo({ top, left, behavior: "instant" });
      put.set(each, [each.scrollTop, each.scrollLeft]);
    });
  }
  offerLink();
});

function leaseShown() {
  return document.querySelector("input[name=lease]")?.value;
}

window.addEventListener("resize", offerLink);
offerLink();
