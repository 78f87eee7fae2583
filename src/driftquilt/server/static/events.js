// The list of events, newest first. New ones arrive above, earlier ones are fetched on demand.

import { ask, streamPath } from "./api.js";
import { make, scroller } from "./elements.js";
import { count } from "./words.js";

const PAGE = 50;
const MOST = 500; // on the page; the service keeps more
const KINDS = {
  DriftFound: "of-drift",
  TrainingFailed: "of-failure",
  ModelTrained: "of-model",
  ModelPromoted: "of-model",
  ModelRolledBack: "of-model",
};

/** What happened, without the row, which stands beside it. */
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
  let first = 0;

  const showEarlier = async (before) => {
    const after = Math.max(before - PAGE - 1, 0);
    const path = `${streamPath(name, "events")}?after=${after}&limit=${PAGE}`;
    const { events } = await ask(path, signal);
    const wanted = events.filter(({ number }) => number < before);
    list.append(...wanted.reverse().map((event) => item(event, onExplain)));
    first = after + 1;
    more.hidden = after === 0;
    none.hidden = list.childElementCount > 0;
  };
  more.addEventListener("click", () => tried(() => showEarlier(first)));

  const add = (event) => {
    if (list.querySelector(`[data-number="${Number(event.number)}"]`)) return;
    none.hidden = true;
    list.prepend(item(event, onExplain));
    while (list.childElementCount > MOST) list.lastElementChild.remove();
  };
  const elements = [none, scroller("tall", "Events", list), more];
  return { elements, add, load: (last) => showEarlier(last + 1) };
};
