// The status of a stream in tiles and words, updated with every status that arrives.

import { announce, make, pairs, setText } from "./elements.js";
import { count, decimals, duration, metricWords, plural, recentWords, sentence, time } from "./words.js";

const MOST_NAMES = 50; // of columns, of classes

const delayWords = ({ label_delay: delay }) => (delay?.n
  ? `Labels arrive after ${duration(delay.median)}, 9 of 10 within ${duration(delay.p90)}.`
  : "No label of a predicted row has arrived since the service started.");

export const trainingWords = ({ training, rows_until_training: left }) => {
  if (training) return "training now";
  if (left === null) return "trains after the next drift";
  return left > 0 ? `trains in ${plural(left, "row")}` : "trains with the next row";
};

const TILES = [
  ["rows learned", (s) => count(s.n_rows)],
  ["drifts", (s) => count(s.n_drifts)],
  ["model in use", (s) => (s.model === null ? "none yet" : String(s.model))],
  ["past segments", (s) => count(s.n_segments)],
  ["rows waiting for labels", (s) => count(s.n_waiting)],
];

/** Tiles that stay where they are while their numbers move; that of a metric is there if there is one. */
export const tiles = () => {
  const values = TILES.map(() => make("dd"));
  const of = make("dt"), recent = make("dd");
  const list = make("dl", { class: "tiles" }, make("div", {}, of, recent),
    TILES.map(([name], k) => make("div", {}, make("dt", {}, name), values[k])));
  const metric = make("dt"), score = make("dd");
  const ofMetric = make("div", {}, metric, score);
  const show = (stream) => {
    const [name, value] = recentWords(stream);
    setText(of, name);
    setText(recent, value);
    TILES.forEach(([, words], k) => setText(values[k], words(stream)));
    if (stream.metric === null) return;
    setText(metric, `recent ${metricWords(stream.metric)}`);
    setText(score, decimals(stream.score));
    if (ofMetric.parentNode === null) list.insertBefore(ofMetric, list.children[1]);
  };
  return { element: list, show };
};

const feedWords = ({ feed }) => {
  if (feed === null) return "";
  const why = feed.last_refused === null ? "" : `, the last because ${feed.last_refused}`;
  const counts = `${plural(feed.n_messages, "message")}, ${count(feed.n_refused)} refused${why}`;
  const trouble = feed.trouble === null ? "" : ` ${sentence(feed.trouble)}`;
  return ` Fed from ${feed.source ?? "a broker"}: ${counts}.${trouble}`;
};

const expertWords = ({ experts }) => {
  const most = Object.entries(experts).sort(([, a], [, b]) => b - a).slice(0, 3)
    .filter(([, share]) => share >= 0.05);
  if (!most.length) return "";
  return ` Who answers: ${most.map(([name, share]) => `${name} ${Math.round(100 * share)} %`).join(", ")}.`;
};

const lead = (stream) => {
  const drift = stream.last_drift === null ? "no drift so far" : `last drift at row ${count(stream.last_drift)}`;
  return `${plural(stream.n_current, "current row")}, ${drift}, ${trainingWords(stream)}. `
    + delayWords(stream) + expertWords(stream) + feedWords(stream);
};

const failureWords = (why) => (why === null ? [] : [
  make("h2", {}, "This stream cannot learn at the moment"),
  make("p", {}, `${sentence(why)} Predictions continue; learning is tried again with the next rows.`)]);

/** The sentence under the name, and the failure if there is one. */
export const leadAndFailure = () => {
  const words = make("p", { class: "lead" });
  const failure = make("div", { class: "failure", role: "alert" });
  let why = null;
  const showFailure = (stream) => {
    if (stream.failure === why) return;
    why = stream.failure;
    failure.replaceChildren(...failureWords(why));
    if (why === null) announce(`${stream.name} learns again`);
  };
  const show = (stream) => {
    setText(words, lead(stream));
    showFailure(stream);
  };
  return { elements: [failure, words], show };
};

const plain = (value) => {
  if (value === null) return "none";
  if (Array.isArray(value)) return value.map(plain).join(", ");
  return String(value);
};

const flat = (values, prefix = "") => Object.entries(values ?? {}).flatMap(([name, value]) =>
  (value !== null && typeof value === "object" && !Array.isArray(value)
    ? flat(value, `${prefix}${name}.`) : [[`${prefix}${name}`, plain(value)]]));

// The first of many names as `draw` shows them, and how many more there are.
const someOf = (all, draw) => {
  const more = all.length - MOST_NAMES;
  if (!all.length) return [make("p", { class: "note" }, "None so far.")];
  return [draw(all.slice(0, MOST_NAMES)),
    more > 0 ? make("p", { class: "note" }, `and ${count(more)} more`) : null];
};

const namesOf = (classes) =>
  make("ul", { class: "names" }, classes.map((label) => make("li", {}, plain(label))));

const labelFacts = ({ task, coverage }) => (task === "regression"
  ? [["labels", "numbers"], ["coverage of intervals", plain(coverage)]] : []);

/** Detector, guard, settings, classes and columns, as a part of the page shows them. */
export const setup = (stream) => {
  const part = (title, content) => make("div", {}, make("h3", {}, title), ...content);
  return [
    part("Detector", [pairs("facts", flat(stream.detector))]),
    part("Guard", [pairs("facts", flat(stream.guard))]),
    part("Settings", [pairs("facts", [...labelFacts(stream), ...flat(stream.settings), ["created", time(stream.created)]])]),
    ...(stream.task === "regression" ? [] : [part("Classes", someOf(stream.classes, namesOf))]),
    part("Columns", someOf(Object.entries(stream.columns), (some) => pairs("facts", some))),
  ];
};
