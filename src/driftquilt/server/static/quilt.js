// The quilt: a row for each selection, oldest first, and a patch for each past segment.
//
// A patch is the stronger the larger the share of epochs that used the segment, or the smaller
// its disparity; dropped ones are pale. For the keyboard it is a grid with one stop.

import { draw } from "./elements.js";
import { gridKeys } from "./grid.js";
import { hideTip, showTip } from "./tip.js";
import { count, decimals, percent, signed } from "./words.js";

const LARGEST = 48;
const SMALLEST = 10;
const SMALLEST_TOUCHED = 24;
const HIGHEST = 1_000; // for all patches together
const TOP = 50;
const LETTER = 7.4;
const ROOM_FOR_TEXT = 30;
const LARGEST_BOUND = 2; // of disparity: from here on nothing is left of a patch's colour
const MODEL_WIDTH = 96;

const shareCover = (patch) => (patch.kept ? 0.15 + 0.85 * patch.share : 0);
const farCover = (patch) =>
  patch.disparity === null ? 0 : Math.min(Math.max(1 - patch.disparity / LARGEST_BOUND, 0), 1);
const ink = (cover) => (cover >= 0.85 ? "full" : cover >= 0.58 ? "mid" : "low");

const layOut = (selections, width) => {
  const segments = new Set(selections.flatMap(({ patches }) => patches.map((p) => p.segment)));
  const columns = new Map([...segments].sort((a, b) => a - b).map((number, k) => [number, k]));
  const letters = Math.max(8, ...selections.map(({ row }) => count(row).length));
  const left = 18 + letters * LETTER;
  const least = matchMedia("(pointer: coarse)").matches ? SMALLEST_TOUCHED : SMALLEST;
  const wide = (width - left - MODEL_WIDTH - 16) / Math.max(columns.size, 1);
  const fits = Math.min(wide, HIGHEST / selections.length);
  const cell = Math.floor(Math.min(Math.max(fits, least), LARGEST));
  const gap = cell >= 24 ? 5 : cell < 16 ? 1.5 : 3;
  const right = left + cell * columns.size;
  const height = TOP + cell * selections.length;
  return { columns, left, cell, gap, right, width: right + MODEL_WIDTH + 8, height };
};

const word = (kind, x, y, text, attributes = {}) =>
  draw("text", { class: kind, x, y, ...attributes }, text);

const heads = (layout) => {
  const widest = Math.max(0, ...[...layout.columns.keys()].map((number) => String(number).length));
  const step = Math.ceil((widest * LETTER + 4) / layout.cell);
  const labels = [...layout.columns].map(([number, k]) =>
    word("small middle", layout.left + layout.cell * k + (layout.cell - layout.gap) / 2, TOP - 8,
      k % step ? "" : String(number),
      { role: "columnheader", "aria-label": `segment ${number}`, "aria-colindex": k + 2 }));
  return draw("g", { role: "row" },
    word("small faint", 10, 22, "at row", { role: "columnheader", "aria-colindex": 1 }),
    layout.columns.size
      ? word("small faint", layout.left, 22, "past segments", { "aria-hidden": true }) : null,
    ...labels,
    word("small faint", layout.right + 12, 22, "model",
      { role: "columnheader", "aria-colindex": layout.columns.size + 2 }));
};

const patchWords = (patch) =>
  `segment ${patch.segment}: ${patch.kept ? `used in ${percent(patch.share)} of epochs` : "dropped"}, `
  + `disparity ${decimals(patch.disparity, 2)}, gain ${signed(patch.gain)}`;

const drawPatch = (patch, x, y, layout) => {
  const size = layout.cell - layout.gap;
  const box = { x, y, width: size, height: size, rx: Math.min(5, size / 5) };
  const middle = [x + size / 2, y + size / 2 + 4];
  const cover = draw("rect", { class: "cover", ...box, "fill-opacity": shareCover(patch).toFixed(2) });
  const group = draw("g", {
    class: patch.kept ? "patch" : "patch out", role: "gridcell", tabindex: -1,
    "aria-label": patchWords(patch), "aria-colindex": layout.columns.get(patch.segment) + 2,
    "data-segment": patch.segment,
  }, draw("rect", { class: "under", ...box }), cover);
  group.style.setProperty("--far", farCover(patch).toFixed(2));
  if (size < ROOM_FOR_TEXT) return group;
  if (patch.kept) {
    const inner = { x: x + 2.5, y: y + 2.5, width: size - 5, height: size - 5, rx: 3 };
    group.append(draw("rect", { class: "stitch", ...inner, "stroke-opacity": 0.55 }));
    const kind = `small middle num by-share ${ink(shareCover(patch))}`;
    group.append(word(kind, ...middle, percent(patch.share)));
  }
  const kind = `small middle num by-far ${ink(farCover(patch))}`;
  group.append(word(kind, ...middle, decimals(patch.disparity, 2)));
  return group;
};

const drawRow = (selection, number, layout, inUse) => {
  const top = TOP + layout.cell * number;
  const middle = top + layout.cell / 2 + 4;
  const tight = number % Math.ceil(14 / layout.cell) ? " tight" : "";
  const isUsed = inUse !== null && selection.model === inUse;
  const model = selection.model === null ? "refused"
    : `${selection.model}${isUsed ? " in use" : ""}`;
  return draw("g",
    { class: isUsed ? "row used" : "row", role: "row", "data-selection": selection.number },
    draw("rect", { class: "band", x: 1, y: top, width: layout.width - 2, height: layout.cell, rx: 6 }),
    word(`name${tight}`, 10, middle, count(selection.row), {
      role: "rowheader", tabindex: -1, "aria-colindex": 1,
      "aria-label": `selection at row ${count(selection.row)}`,
    }),
    ...selection.patches.map((patch) => drawPatch(
      patch, layout.left + layout.cell * layout.columns.get(patch.segment), top + layout.gap / 2, layout)),
    word(`model small${tight}`, layout.right + 12, middle, model,
      { role: "gridcell", tabindex: -1, "aria-colindex": layout.columns.size + 2,
        "aria-label": selection.model === null ? "model refused" : `model ${model}` }));
};

const tell = (cell, { selections, segments }) => {
  const number = Number(cell.closest(".row").dataset.selection);
  const selection = selections.find((one) => one.number === number);
  const patch = selection.patches.find((one) => one.segment === Number(cell.dataset.segment));
  if (!patch) {
    return showTip(cell, `At row ${count(selection.row)}`, [
      ["current rows", count(selection.n_current)], ["model", selection.model ?? "refused"],
      ["validation loss", decimals(selection.validation_loss)]]);
  }
  const segment = segments.find((one) => one.number === patch.segment);
  return showTip(cell, `Segment ${patch.segment}`, [
    ...(segment ? [["rows", `${count(segment.n_rows)} from ${count(segment.first_row)}`]] : []),
    ["epochs used", patch.kept ? percent(patch.share) : "dropped"],
    ["disparity", decimals(patch.disparity)], ["gain", signed(patch.gain)]]);
};

/**
 * The picture of selections (at least one) for a width in pixels; `onOpen(number)` is called for
 * the selection that is chosen.
 */
export const drawQuilt = (shown, width, onOpen) => {
  const layout = layOut(shown.selections, width);
  const rows = shown.selections.map((selection, k) => drawRow(selection, k, layout, shown.inUse));
  const picture = draw("svg", {
    class: "dq live", width: layout.width, height: layout.height, role: "grid",
    viewBox: `0 0 ${layout.width} ${layout.height}`, "aria-colcount": layout.columns.size + 2,
    "aria-label": "The quilt: arrow keys move, Enter explains the selection",
  }, heads(layout), ...rows);
  gridKeys(picture, (cell) => onOpen(Number(cell.closest(".row").dataset.selection)));
  const tipOn = (event) => {
    const cell = event.target.closest("[tabindex]");
    if (cell && picture.contains(cell)) tell(cell, shown);
    else hideTip();
  };
  picture.addEventListener("pointerover", tipOn);
  picture.addEventListener("focusin", tipOn);
  picture.addEventListener("pointerleave", hideTip);
  picture.addEventListener("focusout", hideTip);
  return picture;
};
