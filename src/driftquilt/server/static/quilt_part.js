// The quilt's part of the page: the picture, what its colours mean, and what they are to show.

import { draw, make, whenResized } from "./elements.js";
import { focusedIn, giveFocus } from "./focus.js";
import { rove } from "./grid.js";
import { drawQuilt } from "./quilt.js";
import { counted } from "./words.js";

const MOST_ROWS = 24; // at first; a button shows the others

const sample = (cover) => draw("svg", { class: "dq sample", width: 14, height: 14, "aria-hidden": true },
  draw("rect", { class: "under", x: 1, y: 1, width: 12, height: 12, rx: 2.5 }),
  draw("rect", { class: "cover", x: 1, y: 1, width: 12, height: 12, rx: 2.5, "fill-opacity": cover }));

const ramp = (kind, none, low, high, covers) => make("p", { class: `legend ${kind}` },
  ...(none ? [sample(0), make("span", {}, none)] : []),
  make("span", {}, low), ...covers.map(sample), make("span", {}, high));

const choice = (value, words, checked, onchange) => make("label", {},
  make("input", { type: "radio", name: "by", value, checked, onchange }), make("span", {}, words));

const place = (cell) => ({
  selection: cell.closest(".row").dataset.selection, column: cell.getAttribute("aria-colindex") });

const cellAt = (picture, { selection, column }) =>
  picture.querySelector(`[data-selection="${selection}"] [tabindex][aria-colindex="${column}"]`);

const focusStop = (picture) => giveFocus(picture.querySelector('[tabindex="0"]'));

/** The part, with `show({selections, segments, inUse})`. */
export const quiltPart = (onOpen, signal) => {
  const note = make("p", { class: "note" });
  const scroll = make("div", { class: "scroll quilt-place" });
  const all = make("button", { type: "button", hidden: true, onclick: () => showAll() });
  const by = (value) => () => whole.classList.toggle("far", value === "far");
  const whole = make("div", { class: "patches", hidden: true },
    make("fieldset", { class: "switch" }, make("legend", {}, "Colour patches by"),
      choice("share", "share of epochs", true, by("share")),
      choice("far", "disparity", false, by("far"))),
    scroll,
    ramp("by-share", "dropped", "used in few", "all epochs", [0.12, 0.32, 0.52, 0.72, 0.92]),
    ramp("by-far", "", "disparity 2 or more", "0: as today; dashed: dropped", [0, 0.25, 0.5, 0.75, 1]),
    all);
  let isWhole = false;
  let shown = null;

  const redraw = () => {
    if (!shown?.selections.length) return;
    const old = scroll.querySelector("svg");
    const held = old && focusedIn(old);
    const selections = isWhole ? shown.selections : shown.selections.slice(-MOST_ROWS);
    const picture = drawQuilt({ ...shown, selections }, scroll.clientWidth, onOpen);
    const same = held && cellAt(picture, place(held));
    scroll.replaceChildren(picture);
    if (same) rove(picture, same);
    if (held) focusStop(picture);
    all.hidden = selections.length === shown.selections.length;
    all.textContent = `Show all ${counted(shown.selections.length, "selection")}`;
  };
  const showAll = () => {
    isWhole = true;
    redraw();
    focusStop(scroll); // the button is gone
  };
  whenResized(scroll, redraw, signal);

  const show = (values) => {
    if (JSON.stringify(values) === JSON.stringify(shown)) return;
    shown = values;
    whole.hidden = values.selections.length === 0;
    note.textContent = values.selections.length
      ? "Each row is a selection: a model for a new present. Each patch is a past segment; the "
        + "stronger its colour, the more it served that model. Choose a row or a patch to read why."
      : "There was no selection yet, so there is no patch to show.";
    redraw();
  };
  return { elements: [note, whole], show };
};
