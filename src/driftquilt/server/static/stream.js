// One stream: its status, its quilt, its accuracy or error, its models and events, all of it live.

import { explained, focusedIn, giveFocus, openExplanation } from "./dialogs.js";
import { makeTabStop, wakeChart, wakeQuilt } from "./drawings.js";
import { announce, make, scroller, section, setText, showProblem, whenResized } from "./elements.js";
import { eventList, eventWords } from "./events.js";
import { leadAndFailure, setup, tiles } from "./facts.js";
import { listen, throttled } from "./live.js";
import { modelPart } from "./models.js";
import { ask, askDrawing, streamPath } from "./service.js";
import { plural } from "./words.js";

const WAIT = 2_000; // between two requests for the same numbers
const RESIZE_WAIT = 200;
const MOST_ROWS = 24; // of the quilt at first; a button shows the others
const TOUCH_SIZE = 24; // of the smallest patch that a finger can hit
const ANNOUNCED = new Set([
  "DriftFound", "ModelPromoted", "ModelRolledBack", "TrainingFailed", "SegmentDamaged", "ModelDamaged"]);
const OF_SELECTIONS = new Set([
  "ModelTrained", "ModelPromoted", "ModelKept", "ModelRolledBack", "SegmentSealed", "SegmentDropped",
  "SegmentDamaged"]);

/** The line of accuracy, or of the error; it fits every width by itself. */
const accuracyPart = () => {
  const place = make("div", { class: "charts" });
  const none = make("p", { class: "note" }, "There are too few rows for a line yet.");
  const show = (chart) => {
    none.hidden = chart.childElementCount > 0;
    place.replaceChildren(...(none.hidden ? [chart] : []));
    if (none.hidden) wakeChart(chart);
  };
  return { elements: [none, place], show };
};

const choice = (value, words, checked, onchange) => make("label", {},
  make("input", { type: "radio", name: "by", value, checked, onchange }), make("span", {}, words));

const placeOf = (cell) => ({
  row: cell.closest(".row").dataset.row, column: cell.getAttribute("aria-colindex") });

const cellAt = (quilt, { row, column }) =>
  quilt.querySelector(`[data-row="${row}"] [tabindex][aria-colindex="${column}"]`);

const focusTabStop = (place) => giveFocus(place.querySelector('[tabindex="0"]'));

/** The quilt with `show({selections, inUse})`; `load(query)` requests its drawing. */
const quiltPart = (load, onOpen, watched, signal) => {
  const note = make("p", { class: "note" });
  const scroll = make("div", { class: "quilt-place" });
  const all = make("button", { type: "button", hidden: true, onclick: () => showAll() });
  const by = (value) => () => whole.classList.toggle("disparity", value === "disparity");
  const whole = make("div", { class: "patches", hidden: true },
    make("fieldset", { class: "switch" }, make("legend", {}, "Colour patches by"),
      choice("weight", "weight", true, by("weight")),
      choice("disparity", "disparity", false, by("disparity"))),
    scroll, all);
  const place = make("div", {}, note, whole);
  let isWhole = false;
  let shown = null;

  const replace = (quilt) => {
    const old = scroll.querySelector("svg");
    const focused = old && focusedIn(old);
    const same = focused && cellAt(quilt, placeOf(focused));
    wakeQuilt(quilt, onOpen);
    scroll.replaceChildren(quilt);
    if (same) makeTabStop(quilt, same);
    if (focused) focusTabStop(quilt);
  };
  const redraw = async () => {
    const n = shown?.selections.length ?? 0;
    if (!n) return;
    const rows = isWhole ? n : Math.min(n, MOST_ROWS);
    const smallest = matchMedia("(pointer: coarse)").matches ? TOUCH_SIZE : 10;
    replace(await load({ rows, smallest, width: Math.max(place.clientWidth, 200) }));
    all.hidden = rows === n;
    all.textContent = `Show all ${plural(n, "selection")}`;
  };
  const showAll = async () => {
    isWhole = true;
    await watched(redraw);
    focusTabStop(scroll); // the button is gone
  };
  whenResized(place, throttled(() => watched(redraw), RESIZE_WAIT, signal), signal);

  const show = async (values) => {
    if (JSON.stringify(values) === JSON.stringify(shown)) return;
    const before = shown;
    shown = values;
    whole.hidden = values.selections.length === 0;
    note.textContent = values.selections.length
      ? "Each row is a selection, made for a new model. Each patch is a past segment; the stronger its "
        + "colour, the more it was used. Choose a row or a patch to read why."
      : "There is no selection yet, so there is no patch to show.";
    try {
      await redraw();
    } catch (error) {
      shown = before; // the next try draws again
      throw error;
    }
  };
  return { element: place, show };
};

/** The last selection in words, requested when there is a newer one. */
const lastSelectionPart = (name, signal) => {
  const place = scroller("last tall", "The last selection");
  let shown = null;
  const show = async (selections) => {
    const last = selections.at(-1);
    if (!last) {
      place.replaceChildren(make("p", { class: "note" },
        "Nothing was selected yet: the first model is trained when there are enough rows."));
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
  const tried = (task) => app.tried(task, signal);
  const explain = (number) => tried(() => openExplanation(name, number, signal));
  return {
    state: make("span", { class: "badge live-state", role: "status" }, "connecting"),
    lead: leadAndFailure(),
    tiles: tiles(),
    quilt: quiltPart(
      (query) => askDrawing(`${streamPath(name, "drawings", "quilt")}?${new URLSearchParams(query)}`, signal),
      explain, (task) => app.watched(task, signal), signal),
    accuracy: accuracyPart(),
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

const layOut = (place, parts, isNumbers) => place.append(
  ...parts.lead.elements, parts.tiles.element,
  section("quilt", "The quilt", parts.quilt.element),
  section("accuracy", isNumbers ? "Error over time" : "Accuracy over time",
    make("p", { class: "note" }, `${isNumbers ? "Mean absolute error" : "Accuracy"} of predictions, each made `
      + "just before its row was learned. Dotted lines are detected drifts."),
    ...parts.accuracy.elements),
  make("div", { class: "two" },
    section("selection", "The last selection", parts.last.element),
    section("events", "Events", ...parts.events.elements)),
  make("div", { class: "two" },
    section("models", "Models", ...parts.models.elements),
    section("setup", "How it is set up", parts.setup)));

/** What requests parts of the stream again; each may be called at any rate. */
const refreshersOf = (name, parts, app, signal) => {
  const get = (...path) => ask(streamPath(name, ...path), signal);
  const refresher = (task) => throttled(() => app.watched(task, signal), WAIT, signal);
  return {
    accuracy: refresher(async () =>
      parts.accuracy.show(await askDrawing(streamPath(name, "drawings", "accuracy"), signal))),
    selections: refresher(async () => {
      const [{ selections }, models] = await Promise.all([get("selections"), get("models")]);
      parts.models.show(models);
      await Promise.all([
        parts.quilt.show({ selections, inUse: models.in_use }), parts.last.show(selections)]);
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
    if (stream.n_rows !== n) refresh.accuracy();
    n = stream.n_rows;
  };
};

const follow = (name, last, parts, refresh, show, signal) => {
  const onState = (state) => {
    setText(parts.state, state);
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
    showProblem(error.message, "live");
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
  const tried = (task) => app.tried(task, signal);
  parts.models = modelPart(name, app.may("admin"), tried, refresh.selections);
  title.append(parts.state);
  layOut(place, parts, stream.task === "regression");
  const show = statusShower(parts, refresh);
  show(stream);
  refresh.selections();
  follow(name, stream.last_event, parts, refresh, show, signal);
  app.watched(() => parts.events.load(stream.last_event), signal);
};
