// The models that can be used again, with buttons for those who may: promote, roll back, adapt.

import { confirmed, focusedIn, giveFocus } from "./dialogs.js";
import { announce, make, scroller } from "./elements.js";
import { post, streamPath } from "./service.js";
import { bytes, count, decimals } from "./words.js";

const HEADS = [["Version", ""], ["Trained at row", "n"], ["Loss", "n"], ["Size", "n size"]];

const row = (model, promote) => make("tr", { class: model.in_use ? "used" : null },
  make("th", { scope: "row" }, String(model.version),
    model.in_use ? make("span", { class: "badge" }, "in use") : null),
  make("td", { class: "n" }, count(model.row)),
  make("td", { class: "n" }, decimals(model.loss)),
  make("td", { class: "n size" }, bytes(model.n_bytes)),
  promote ? make("td", { class: "n" }, model.in_use ? null : make("button", {
    type: "button", class: "small-button", "aria-label": `Use model ${model.version}`,
    "data-version": model.version, onclick: () => promote(model.version),
  }, "use")) : null);

const table = (models, promote) => make("table", {},
  make("caption", { class: "sr" }, "Models that can be used again, newest first"),
  make("thead", {}, make("tr", {},
    HEADS.map(([words, kind]) => make("th", { scope: "col", class: kind }, words)),
    promote ? make("th", { scope: "col" }, make("span", { class: "sr" }, "Change")) : null)),
  make("tbody", {}, [...models].sort((a, b) => b.version - a.version)
    .map((model) => row(model, promote))));

/** The next older model, which the service would roll back to; null if there is none. */
const olderThan = ({ in_use: inUse, models }) => {
  const older = models.map(({ version }) => version).filter((version) => version < inUse);
  return older.length ? Math.max(...older) : null;
};

/** A button that keeps the focus when it is disabled; `allow(why)` sets the reason, "" enables it. */
const button = (words, onclick) => {
  const element = make("button", {
    type: "button", onclick: () => { if (element.ariaDisabled !== "true") onclick(); },
  }, words);
  const allow = (why) => {
    element.ariaDisabled = String(why !== "");
    element.title = why;
  };
  return { element, allow };
};

/** The table and the buttons; `tried` runs what may fail, `changed` what follows a success. */
export const modelPart = (name, mayChange, tried, changed) => {
  const place = scroller("tall", "Models");
  let shown = "";
  let older = null;
  const act = (title, text, action, path, words) => tried(async () => {
    if (!await confirmed(title, text, action)) return;
    const answer = await post(path);
    announce(words(answer));
    changed();
  });
  const promote = (version) => act(`Use model ${version}?`,
    "It answers from now on; the model in use is kept and can be used again.", "Use it",
    streamPath(name, "models", version, "promote"), ({ model }) => `Model ${model} is in use`);
  const rollBack = button("Roll back", () => act("Roll back?",
    `The next older model, model ${older}, answers from now on; the model in use is kept and `
    + "can be used again.", "Roll back",
    streamPath(name, "models", "rollback"), ({ model }) => `Rolled back to model ${model}`));
  const adapt = button("Adapt now", () => act("Adapt now?",
    "A model is trained on the current rows and on past segments that agree with them.", "Adapt",
    streamPath(name, "adapt"), () => "Training has started"));

  const draw = ({ models }) => {
    const held = focusedIn(place)?.dataset.version;
    place.replaceChildren(models.length ? table(models, mayChange ? promote : null)
      : make("p", { class: "note" }, "There is no model yet."));
    if (held) giveFocus(place.querySelector(`[data-version="${held}"]`) ?? place);
  };
  const show = (answer) => {
    const now = JSON.stringify(answer);
    if (now === shown) return;
    shown = now;
    older = olderThan(answer);
    rollBack.allow(older === null ? "There is no model older than the one in use" : "");
    draw(answer);
  };
  rollBack.allow("There is no model yet");
  const training = (now) => adapt.allow(now ? "A training is running" : "");
  const buttons = make("p", { class: "buttons" }, rollBack.element, adapt.element);
  return { elements: mayChange ? [buttons, place] : [place], show, training };
};
