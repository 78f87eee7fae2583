// All streams at a glance, one card each, requested again every few seconds.

import { make, pairs } from "./elements.js";
import { trainingWords } from "./facts.js";
import { throttled } from "./live.js";
import { ask, askDrawing, streamPath } from "./service.js";
import { count, decimals, duration, metricWords, plural, recentWords, sentence } from "./words.js";

const WAIT = 5_000;
const AT_ONCE = 4; // requests for lines of accuracy

const badgeKind = ({ failure, training }) =>
  (failure !== null ? "badge bad" : training ? "badge busy" : "badge");

const card = (stream) => {
  const delay = stream.label_delay?.n ? duration(stream.label_delay.median) : "–";
  const spark = make("div", { class: "spark-place" });
  const [of, recent] = recentWords(stream);
  const element = make("li", { class: stream.failure === null ? "card" : "card failed" },
    make("h2", {}, make("a", { href: `#/streams/${stream.name}` }, stream.name)),
    make("p", { class: "state" }, make("span", { class: badgeKind(stream) },
      stream.failure === null ? trainingWords(stream) : "cannot learn")),
    make("div", { class: "accuracy-now" },
      make("p", {}, make("strong", {}, recent), ` ${of}`), spark),
    pairs("card-facts", [
      ...(stream.metric === null ? [] : [[`recent ${metricWords(stream.metric)}`, decimals(stream.score)]]),
      ["rows", count(stream.n_rows)], ["drifts", count(stream.n_drifts)],
      ["model", stream.model === null ? "none yet" : String(stream.model)], ["label delay", delay]]),
    stream.failure === null ? null : make("p", { class: "failure" }, sentence(stream.failure)));
  return { element, spark };
};

const damagedWords = (n) => `${plural(n, "stream")} ${n === 1 ? "is" : "are"} damaged and cannot `
  + "be opened. The log of the service says why; restore them from a backup, or delete them.";

/** Streams that cannot be opened, by name; nothing if there is none. */
const damagedPart = (names) => (names.length ? [
  make("p", {}, damagedWords(names.length)),
  make("ul", { class: "names" }, names.map((name) => make("li", {}, name)))] : []);

/** Null if the stream was deleted meanwhile. */
const sparklineOf = (name, signal) =>
  askDrawing(streamPath(name, "drawings", "sparkline"), signal).catch((error) => {
    if (error.status === 404) return null;
    throw error;
  });

/** Lines of accuracy, requested only where rows were learned since. */
const sparkKeeper = (signal) => {
  const known = new Map();
  const draw = async ({ name, n_rows: n }, place) => {
    const before = known.get(name);
    const line = before?.n === n ? before.line : await sparklineOf(name, signal);
    if (line === null) return;
    known.set(name, { n, line });
    place.replaceChildren(line);
  };
  return async (streams, places) => {
    const left = streams.map((stream, k) => [stream, places[k]]);
    places.forEach((place, k) => place.replaceChildren(known.get(streams[k].name)?.line ?? ""));
    const worker = async () => {
      for (let next = left.shift(); next; next = left.shift()) await draw(...next);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  };
};

/** Shows the streams in a place until the signal. */
export const showOverview = (place, app, signal) => {
  const list = make("ul", { class: "cards" });
  const broken = make("div", { class: "failure damaged" });
  const words = make("p", { class: "note" });
  const heading = make("h1", { tabindex: -1 }, "Streams");
  place.replaceChildren(heading, words, broken, list);
  app.arrive(heading);
  const drawSparks = sparkKeeper(signal);
  let shown = "";

  const refresh = async () => {
    const { streams, damaged } = await ask("/v1/streams", signal);
    const now = JSON.stringify([streams, damaged]);
    if (now === shown) return;
    const any = streams.length + damaged.length > 0;
    words.textContent = any ? "" : "There is no stream yet; create one with POST /v1/streams.";
    broken.replaceChildren(...damagedPart(damaged));
    const focused = document.activeElement?.closest(".cards a")?.getAttribute("href");
    const cards = streams.map(card);
    list.replaceChildren(...cards.map(({ element }) => element));
    [...list.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
    await drawSparks(streams, cards.map(({ spark }) => spark));
    shown = now;
  };

  const again = throttled(() => app.watched(refresh, signal), WAIT, signal);
  const timer = setInterval(() => { if (!document.hidden) again(); }, WAIT);
  signal.addEventListener("abort", () => clearInterval(timer));
  again();
};
