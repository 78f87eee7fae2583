// Lines of accuracy: the large one with its drifts, and the small ones on the cards.

import { draw } from "./elements.js";
import { hideTip, showTip } from "./tip.js";
import { count, counted, decimals } from "./words.js";

const HEIGHT = 260;
const MARGIN = { left: 44, right: 26, top: 14, bottom: 30 };

/** Points [row, accuracy], one for each full bucket; the service has at most 400. */
const pointsOf = ({ size, first_row: first, accuracy }) =>
  accuracy.map((value, k) => [first + size * (k + 1), value]);

/** Round accuracies up to 1 that enclose all values. */
const accuracyTicks = (values) => {
  const worst = Math.min(Math.max(Math.min(...values), 0), 0.95);
  const [step] = [[0.02, 0.9], [0.05, 0.75], [0.1, 0.5], [0.2, 0]].find(([, low]) => worst >= low);
  const n = Math.ceil(Number(((1 - worst) / step).toFixed(9)));
  return Array.from({ length: n + 1 }, (_, k) => Number((1 - step * (n - k)).toFixed(2)));
};

/** Round numbers of rows, as many as there is room for. */
const rowTicks = (low, high, most) => {
  const rough = (high - low) / most;
  const unit = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = unit * [1, 2, 5, 10].find((times) => unit * times >= rough);
  const ticks = [];
  for (let row = Math.ceil(low / step) * step; row <= high; row += step) ticks.push(row);
  return ticks;
};

const scaled = (values, [low, high], [from, to]) =>
  values.map((value) => from + (to - from) * (value - low) / Math.max(high - low, 1e-9));

const frame = (points, first, last, width) => {
  const ticks = accuracyTicks(points.map(([, value]) => value));
  const rows = [first, Math.max(last, points.at(-1)[0], first + 1)];
  const across = [MARGIN.left, width - MARGIN.right];
  const down = [HEIGHT - MARGIN.bottom, MARGIN.top];
  return {
    ticks, rows, across, down,
    x: (row) => scaled([row], rows, across)[0],
    y: (value) => scaled([value], [ticks[0], 1], down)[0],
  };
};

const grid = ({ ticks, rows, across, down, x, y }) => [
  ...ticks.flatMap((tick) => [
    draw("line", { class: "grid", x1: across[0], x2: across[1], y1: y(tick), y2: y(tick) }),
    draw("text", { class: "small faint end num", x: across[0] - 8, y: y(tick) + 4 }, tick.toFixed(2)),
  ]),
  ...rowTicks(...rows, Math.max((across[1] - across[0]) / 90, 2)).map((row) =>
    draw("text", { class: "small faint middle num", x: x(row), y: down[0] + 20 }, count(row))),
];

const driftMarks = (drifts, { rows, down, x }) =>
  drifts.filter((row) => row >= rows[0]).map((row) =>
    draw("line", { class: "drift", x1: x(row), x2: x(row), y1: down[0], y2: down[1] }));

const summary = (points, drifts) => {
  const lowest = points.reduce((best, point) => (point[1] < best[1] ? point : best));
  const last = drifts.length ? `, the last at row ${count(drifts.at(-1))}` : "";
  return `Accuracy up to row ${count(points.at(-1)[0])}: now ${decimals(points.at(-1)[1])}, `
    + `lowest ${decimals(lowest[1])} at row ${count(lowest[0])}; ${counted(drifts.length, "drift")}${last}`;
};

const wakePointer = (picture, points, { down, x, y }) => {
  const dot = draw("circle", { class: "dot", r: 4, visibility: "hidden" });
  picture.append(dot);
  picture.addEventListener("pointermove", (event) => {
    const at = event.clientX - picture.getBoundingClientRect().left;
    const [row, value] = points.reduce((best, point) =>
      Math.abs(x(point[0]) - at) < Math.abs(x(best[0]) - at) ? point : best);
    dot.setAttribute("cx", x(row));
    dot.setAttribute("cy", y(value));
    dot.setAttribute("visibility", "visible");
    showTip(dot, `Row ${count(row)}`, [["accuracy", decimals(value)]]);
  });
  picture.addEventListener("pointerleave", () => {
    dot.setAttribute("visibility", "hidden");
    hideTip();
  });
};

/** The line of accuracy with its drifts, over all rows; there must be at least one bucket.
 *  It ends with the last full bucket, which rows and drifts may have left behind. */
export const drawAccuracy = (answer, nRows, width) => {
  const points = pointsOf(answer);
  const within = frame(points, answer.first_row, Math.max(nRows, ...answer.drifts.slice(-1)), width);
  const places = points.map(([row, value]) => `${within.x(row).toFixed(1)},${within.y(value).toFixed(1)}`);
  const picture = draw("svg", {
    class: "dq accuracy-line", width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
    "aria-label": summary(points, answer.drifts),
  }, ...grid(within), ...driftMarks(answer.drifts, within),
  points.length > 1 ? draw("polyline", { class: "line", points: places.join(" ") })
    : draw("circle", { class: "dot", r: 3, cx: places[0].split(",")[0], cy: places[0].split(",")[1] }));
  wakePointer(picture, points, within);
  return picture;
};

/** A line without numbers, for those who see it; the number stands beside it. */
export const drawSparkline = (answer) => {
  const [width, height] = [132, 34];
  const values = answer.accuracy.slice(-60);
  const picture = draw("svg", {
    class: "dq spark", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": true,
  });
  if (values.length < 2) return picture;
  const xs = scaled(values.map((_, k) => k), [0, values.length - 1], [2, width - 2]);
  const ys = scaled(values, [Math.min(...values, 0.9), 1], [height - 3, 3]);
  const places = xs.map((x, k) => `${x.toFixed(1)},${ys[k].toFixed(1)}`);
  picture.append(draw("polyline", { class: "line", points: places.join(" ") }));
  return picture;
};
