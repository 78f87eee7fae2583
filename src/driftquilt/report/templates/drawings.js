// What makes drawings interactive, in the report and on the live page: notes beside what is pointed
// at, the quilt as a grid for the keyboard, values of charts under the pointer.

const all = (query, within = document) => [...within.querySelectorAll(query)];

// The tip: a small note beside whatever is pointed at or focused; Escape hides it.

const GAP = 8;
let tipTarget = null;

const placeTip = (tip) => {
  const box = tipTarget.getBoundingClientRect();
  const rightmost = document.documentElement.clientWidth - tip.offsetWidth - GAP;
  const left = Math.max(Math.min(box.left + box.width / 2 - tip.offsetWidth / 2, rightmost), GAP);
  const above = box.top - tip.offsetHeight - GAP;
  tip.style.left = `${left}px`;
  tip.style.top = `${above < GAP ? Math.min(box.bottom + GAP, innerHeight - tip.offsetHeight) : above}px`;
};

const textElement = (tag, text) => {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
};

const tipLine = (line, number) => {
  if (typeof line === "string") return textElement(number ? "em" : "strong", line);
  const pair = document.createElement("div");
  pair.append(...line.map((text) => textElement("span", text)));
  return pair;
};

/** Shows a heading and lines, each a text or [name, value], above the target or below it. */
const showTip = (target, lines) => {
  const tip = document.getElementById("tip");
  tipTarget = target;
  tip.replaceChildren(...lines.map(tipLine));
  tip.hidden = false;
  placeTip(tip);
};

export const hideTip = () => { document.getElementById("tip").hidden = true; };

document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
// A tip follows a target that scrolls, as long as the target has the focus or its drawing the pointer.
document.addEventListener("scroll", () => {
  const tip = document.getElementById("tip");
  if (tip.hidden) return;
  if (tipTarget === document.activeElement || tipTarget.closest("svg").matches(":hover")) placeTip(tip);
  else hideTip();
}, { capture: true, passive: true });

// The quilt: one stop for the tab key, and from there arrows, Home and End.

const cellsOf = (row) => all("[tabindex]", row);
const rowsOf = (quilt) => all(".row", quilt);
const column = (cell) => Number(cell.getAttribute("aria-colindex"));

const sideways = (cell, step) => {
  const row = cellsOf(cell.closest(".row"));
  return row[row.indexOf(cell) + step];
};

const upDown = (quilt, cell, step) => {
  const rows = rowsOf(quilt);
  const row = rows[rows.indexOf(cell.closest(".row")) + step];
  if (!row) return undefined;
  return cellsOf(row).reduce((best, other) =>
    Math.abs(column(other) - column(cell)) < Math.abs(column(best) - column(cell)) ? other : best);
};

const steps = {
  ArrowLeft: (quilt, cell) => sideways(cell, -1),
  ArrowRight: (quilt, cell) => sideways(cell, 1),
  ArrowUp: (quilt, cell) => upDown(quilt, cell, -1),
  ArrowDown: (quilt, cell) => upDown(quilt, cell, 1),
  Home: (quilt, cell) => cellsOf(cell.closest(".row"))[0],
  End: (quilt, cell) => cellsOf(cell.closest(".row")).at(-1),
};

/** Makes one cell of a quilt the stop for the tab key. */
export const makeTabStop = (quilt, cell) => {
  cellsOf(quilt).forEach((other) => other.setAttribute("tabindex", other === cell ? 0 : -1));
};

/** Makes a quilt interactive; `onChoose(number)` gets the row for Enter, Space and a click. */
export const wakeQuilt = (quilt, onChoose) => {
  const choose = (cell) => onChoose(Number(cell.closest(".row").dataset.row));
  const tipOn = (event) => {
    const cell = event.target.closest("[tabindex]");
    if (cell?.dataset.tip && quilt.contains(cell)) {
      showTip(cell, cell.dataset.tip.split("\n").map(
        (line) => (line.includes("\t") ? line.split("\t") : line)));
    } else {
      hideTip();
    }
  };
  makeTabStop(quilt, cellsOf(rowsOf(quilt).at(-1))[0]);
  quilt.addEventListener("keydown", (event) => {
    const cell = event.target.closest("[tabindex]");
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(cell);
    } else if (event.key in steps) {
      event.preventDefault();
      const next = steps[event.key](quilt, cell);
      if (next) { makeTabStop(quilt, next); next.focus(); }
    }
  });
  quilt.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (!row) return;
    const cell = event.target.closest("[tabindex]") ?? cellsOf(row)[0];
    makeTabStop(quilt, cell);
    cell.focus({ preventScroll: true });
    choose(cell);
  });
  quilt.addEventListener("pointerover", tipOn);
  quilt.addEventListener("focusin", tipOn);
  quilt.addEventListener("pointerleave", hideTip);
  quilt.addEventListener("focusout", hideTip);
};

// Charts: the values of lines at the place under the pointer, read from the points of the lines.

const MOST_LINES = 8; // in a tip; of more lines, those nearest to the pointer
const numbers = (text) => text.split(" ").map(Number);

const draw = (tag, attributes) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};

/** Points [x, y] of a line, from 0 to 1 from left to right and from top to bottom. */
const pointsOf = (line) => {
  const { width, height } = line.ownerSVGElement.viewBox.baseVal;
  return line.getAttribute("d").split("M").slice(1).flatMap((stroke) => {
    const values = stroke.match(/-?[\d.]+/g).map(Number);
    let [x, y] = [0, 0]; // after the first place there are steps
    return values.flatMap((value, k) => {
      if (k % 2 === 0) { x += value; return []; }
      y += value;
      return [[x / width, y / height]];
    });
  });
};

const nearest = (places, x) => places.reduce((best, place, k) =>
  Math.abs(place - x) < Math.abs(places[best] - x) ? k : best, 0);

/** The lines that have a value at a place: name, class, height and value in words. */
const valuesAt = (lines, place, [low, high]) => {
  const digits = Math.max(3, 2 - Math.floor(Math.log10(high - low)));
  const near = 1e-3 / 2; // points are written with a precision of a tenth of a thousandth
  return lines.flatMap(({ line, name, style, points }) => {
    const point = line.classList.contains("off") ? undefined
      : points.find(([x]) => Math.abs(x - place) < near);
    if (!point) return [];
    const value = Number((high - (high - low) * point[1]).toFixed(digits + 1));
    const number = Number(line.dataset.line);
    return [{ number, name, style, y: point[1], text: value.toFixed(digits).replace("-", "−") }];
  });
};

const headingOf = (chart, x) => {
  const { names, xName } = chart.dataset;
  if (names) return JSON.parse(names)[x];
  return `${xName.charAt(0).toUpperCase()}${xName.slice(1)} ${x.toLocaleString("en")}`;
};

/** Makes a chart interactive. */
export const wakeChart = (chart) => {
  const names = new Map(); // by line; the first view has them
  all(".line title", chart).forEach((title) => {
    names.set(title.parentElement.dataset.line, title.textContent);
    title.remove(); // the tip has the name
  });
  const lines = all(".line", chart).map((line) => ({
    line, name: names.get(line.dataset.line), style: line.classList[1], points: pointsOf(line),
  }));
  const [first, last] = numbers(chart.dataset.xRange);
  const pointed = draw("g", {});
  const clear = () => { pointed.replaceChildren(); hideTip(); };
  const point = (event) => {
    const view = chart.querySelector(".view:not(.other)");
    const box = chart.getBoundingClientRect();
    const xs = numbers(view.dataset.x);
    const places = xs.map((x) => (x - first) / (last - first));
    const k = nearest(places, (event.clientX - box.left) / box.width);
    const height = (event.clientY - box.top) / box.height;
    const shown = valuesAt(lines.filter(({ line }) => view.contains(line)), places[k],
      numbers(chart.dataset.yRange));
    const listed = shown.sort((a, b) => Math.abs(a.y - height) - Math.abs(b.y - height))
      .slice(0, MOST_LINES).sort((a, b) => a.number - b.number);
    if (!listed.length) { clear(); return; }
    const x = `${100 * places[k]}%`;
    const guide = draw("line", { class: "guide", x1: x, x2: x, y1: "0", y2: "100%" });
    pointed.replaceChildren(guide, ...listed.map(({ style, y }) =>
      draw("circle", { class: `marker ${style}`, cx: x, cy: `${100 * y}%`, r: 4 })));
    showTip(guide, [headingOf(chart, xs[k]), ...listed.map(({ name, text }) => [name, text])]);
  };
  chart.append(pointed);
  chart.addEventListener("pointermove", point);
  chart.addEventListener("pointerdown", point);
  chart.addEventListener("pointerleave", clear);
};
