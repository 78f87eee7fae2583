// One stream: what it is now, its quilt, its accuracy, its models and events, all of it live.

import { ask, streamPath } from "./api.js";
import { explained, openExplanation } from "./dialogs.js";
import { make, say, scroller, section, whenResized } from "./elements.js";
import { eventList, eventWords } from "./events.js";
import { leadAndFailure, setup, tiles } from "./facts.js";
import { drawAccuracy } from "./lines.js";
import { listen, paced } from "./live.js";
import { modelPart } from "./models.js";
import { announce, complain } from "./notices.js";
import { quiltPart } from "./quilt_part.js";

const WAIT = 2_000; // between two looks at the same numbers
const ANNOUNCED = new Set(["DriftFound", "ModelPromoted", "ModelRolledBack", "TrainingFailed"]);
const OF_SELECTIONS = new Set([
  "ModelTrained", "ModelPromoted", "ModelKept", "ModelRolledBack", "SegmentSealed", "SegmentDropped"]);

/** The line of accuracy, drawn again when the page gets another width. */
const accuracyPart = (signal) => {
  const place = make("div", { class: "chart" });
  const none = make("p", { class: "note" }, "There are too few rows for a line yet.");
  let shown = null;
  let nRows = 0;
  const redraw = () => {
    const any = shown !== null && shown.accuracy.length > 0;
    none.hidden = any;
    place.replaceChildren(...(any ? [drawAccuracy(shown, nRows, Math.max(place.clientWidth, 240))] : []));
  };
  whenResized(place, redraw, signal);
  return {
    elements: [none, place],
    reach: (rows) => { nRows = rows; },
    show: (answer) => { shown = answer; redraw(); },
  };
};

/** The last selection in words, fetched when there is a newer one. */
const lastSelectionPart = (name, signal) => {
  const place = scroller("last tall", "The last selection");
  let shown = null;
  const show = async (selections) => {
    const last = selections.at(-1);
    if (!last) {
      place.replaceChildren(make("p", { class: "note" },
        "Nothing was selected yet: the first model comes with enough rows."));
      return;
    }
    const key = `${last.number} ${last.model}`;
    if (key === shown) return;
    place.replaceChildren(...explained(await ask(streamPath(name, "selections", last.number), signal)));
    shown = key;
  };
  return { element: place, show };
};

const partsOf = (name, app, signal) => {
  const tried = (work) => app.tried(work, signal);
  const explain = (number) => tried(() => openExplanation(name, number, signal));
  return {
    state: make("span", { class: "badge live-state", role: "status" }, "connecting"),
    lead: leadAndFailure(),
    tiles: tiles(),
    quilt: quiltPart(explain, signal),
    accuracy: accuracyPart(signal),
    last: lastSelectionPart(name, signal),
    events: eventList(name, explain, signal, tried),
    setup: scroller("setup-parts tall", "How it is set up"),
  };
};

const begin = (place, name, app) => {
  const heading = make("h1", { tabindex: -1 }, name);
  const title = make("div", { class: "title" }, heading);
  place.replaceChildren(make("p", { class: "back" }, make("a", { href: "#/" }, "← All streams")), title);
  app.arrive(heading);
  return title;
};

const layOut = (place, parts) => place.append(
  ...parts.lead.elements, parts.tiles.element,
  section("quilt", "The quilt", ...parts.quilt.elements),
  section("accuracy", "Accuracy over time",
    make("p", { class: "note" }, "Share of right predictions, each made right before its row was "
      + "learned. Dotted lines are drifts that were found."),
    ...parts.accuracy.elements),
  make("div", { class: "two" },
    section("selection", "The last selection", parts.last.element),
    section("events", "Events", ...parts.events.elements)),
  make("div", { class: "two" },
    section("models", "Models", ...parts.models.elements),
    section("setup", "How it is set up", parts.setup)));

/** What asks for parts of the stream again; each is called as often as one likes. */
const refreshersOf = (name, parts, app, signal) => {
  const get = (...path) => ask(streamPath(name, ...path), signal);
  const make = (work) => paced(() => app.watched(work, signal), WAIT, signal);
  return {
    accuracy: make(async () => parts.accuracy.show(await get("accuracy"))),
    selections: make(async () => {
      const [{ selections }, { segments }, kept] = await Promise.all(
        [get("selections"), get("segments"), get("models")]);
      parts.quilt.show({ selections, segments, inUse: kept.in_use });
      parts.models.show(kept);
      await parts.last.show(selections);
    }),
  };
};

const statusShower = (parts, refresh) => {
  let n = null;
  let setUp = "";
  return (stream) => {
    parts.lead.show(stream);
    parts.tiles.show(stream);
    parts.models.training(stream.training);
    const { detector, guard, settings, classes, columns } = stream;
    const now = JSON.stringify([detector, guard, settings, classes, columns]);
    if (now !== setUp) parts.setup.replaceChildren(...setup(stream));
    setUp = now;
    if (stream.n_rows !== n) {
      parts.accuracy.reach(stream.n_rows);
      refresh.accuracy();
    }
    n = stream.n_rows;
  };
};

const follow = (name, last, parts, refresh, show, signal) => {
  const onState = (state) => {
    say(parts.state, state);
    parts.state.classList.toggle("on", state === "live");
    if (state === "live") { refresh.accuracy(); refresh.selections(); }
  };
  const onEvent = (kind, data) => {
    if (kind === "status") { show(data); return; }
    parts.events.add(data);
    if (ANNOUNCED.has(kind)) announce(`${name}, row ${data.row}: ${eventWords(data)}`);
    if (kind === "DriftFound") refresh.accuracy();
    if (OF_SELECTIONS.has(kind)) refresh.selections();
  };
  const onEnd = (error) => {
    onState("ended");
    complain(error.message, "live");
  };
  return listen(streamPath(name, "events", "live"), last, signal, { onEvent, onState, onEnd });
};

/** Shows a stream in a place until the signal. */
export const showStream = async (place, name, app, signal) => {
  const title = begin(place, name, app);
  const stream = await app.watched(() => ask(streamPath(name), signal), signal);
  if (!stream) return;
  const parts = partsOf(name, app, signal);
  const refresh = refreshersOf(name, parts, app, signal);
  const tried = (work) => app.tried(work, signal);
  parts.models = modelPart(name, app.may("admin"), tried, refresh.selections);
  title.append(parts.state);
  layOut(place, parts);
  const show = statusShower(parts, refresh);
  show(stream);
  refresh.selections();
  follow(name, stream.last_event, parts, refresh, show, signal);
  app.watched(() => parts.events.load(stream.last_event), signal);
};
