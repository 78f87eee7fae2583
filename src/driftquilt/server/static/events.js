// The list of events, newest first. New ones appear at the top, earlier ones are loaded on demand.

import { giveFocus } from "./dialogs.js";
import { make, scroller } from "./elements.js";
import { ask, streamPath } from "./service.js";
import { count } from "./words.js";

const PAGE = 50;
const MOST = 1_000; // that the service keeps, with gaps between their numbers, and the page shows
const KINDS = {
  DriftFound: "of-drift",
  TrainingFailed: "of-failure",
  ModelTrained: "of-model",
  ModelPromoted: "of-model",
  ModelRolledBack: "of-model",
};

/** What happened, without the row, which is beside it. */
export const eventWords = (event) => {
  const start = `row ${event.row}: `;
  return event.text.startsWith(start) ? event.text.slice(start.length) : event.text;
};

const item = (event, onExplain) =>
  make("li", { class: KINDS[event.event] ?? null, "data-number": event.number },
    make("span", { class: "at" }, `row ${count(event.row)}`),
    make("span", { class: "what" }, eventWords(event),
      event.event === "ModelTrained"
        ? make("button", {
          type: "button", class: "small-button",
          "aria-label": `Explain the selection at row ${count(event.row)}`,
          onclick: () => onExplain(event.number),
        }, "explain") : null));

/** The list with `add(event)` and `load(last)`, which shows the events up to the last. */
export const eventList = (name, onExplain, signal, tried) => {
  const list = make("ol", { class: "events-list", reversed: true });
  const none = make("p", { class: "note" }, "Nothing has happened yet.");
  const more = make("button", { type: "button", hidden: true }, "Earlier events");
  const place = scroller("tall", "Events", list);

  const get = async (after, limit) =>
    (await ask(`${streamPath(name, "events")}?after=${after}&limit=${limit}`, signal)).events;
  const first = () => Number(list.lastElementChild?.dataset.number ?? Infinity);
  const append = (events) => {
    list.append(...events.reverse().map((event) => item(event, onExplain)));
    none.hidden = list.childElementCount > 0;
  };

  const load = async (last) => {
    const after = Math.max(last - PAGE, 0);
    const [events, oldest] = await Promise.all([get(after, PAGE), after ? get(0, 1) : []]);
    append(events.filter(({ number }) => number <= last));
    more.hidden = !oldest.some(({ number }) => number < first());
  };
  const showEarlier = async () => {
    const events = await get(0, MOST);
    const earlier = events.filter(({ number }) => number < first());
    append(earlier.slice(-PAGE));
    more.hidden = earlier.length <= PAGE;
    if (more.hidden) giveFocus(place);
  };
  more.addEventListener("click", () => tried(showEarlier));

  const add = (event) => {
    if (list.querySelector(`[data-number="${Number(event.number)}"]`)) return;
    none.hidden = true;
    list.prepend(item(event, onExplain));
    for (; list.childElementCount > MOST; more.hidden = false) list.lastElementChild.remove();
  };
  return { elements: [none, place, more], add, load };
};
