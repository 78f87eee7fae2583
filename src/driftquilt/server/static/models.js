// The models that can be used again, with buttons for those who may: promote, roll back, adapt.

import { post, streamPath } from "./api.js";
import { confirmed } from "./dialogs.js";
import { make, scroller } from "./elements.js";
import { focusedIn, giveFocus } from "./focus.js";
import { announce } from "./notices.js";
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

/** The next older model that is kept, which the service would roll back to; null if none. */
const olderThan = ({ in_use: inUse, models }) => {
  const older = models.map(({ version }) => version).filter((version) => version < inUse);
  return older.length ? Math.max(...older) : null;
};

/** A button that keeps the focus when it cannot be used; `allow(why)` says why not, "" if it can. */
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

/** The table and the buttons; `tried` runs what may fail, `changed` what follows. */
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
    "It answers from now on; the model in use stays and can be used again.", "Use it",
    streamPath(name, "models", version, "promote"), ({ model }) => `Model ${model} is in use`);
  const rollBack = button("Roll back", () => act("Roll back?",
    `The next older model that is kept, model ${older}, answers from now on; the model in use `
    + "stays and can be used again.", "Roll back",
    streamPath(name, "models", "rollback"), ({ model }) => `Rolled back to model ${model}`));
  const adapt = button("Adapt now", () => act("Adapt now?",
    "A model is trained on the current rows and what still agrees with them.", "Adapt",
    streamPath(name, "adapt"), () => "Training has begun"));

  const draw = ({ models }) => {
    const held = focusedIn(place)?.dataset.version;
    place.replaceChildren(models.length ? table(models, mayChange ? promote : null)
      : make("p", { class: "note" }, "There is no model yet."));
    if (held) giveFocus(place.querySelector(`[data-version="${held}"]`) ?? place);
  };
  const show = (kept) => {
    const now = JSON.stringify(kept);
    if (now === shown) return;
    shown = now;
    older = olderThan(kept);
    rollBack.allow(older === null ? "No model is kept that is older than the one in use" : "");
    draw(kept);
  };
  rollBack.allow("No model is known yet");
  const training = (now) => adapt.allow(now ? "A training is under way" : "");
  const buttons = make("p", { class: "buttons" }, rollBack.element, adapt.element);
  return { elements: mayChange ? [buttons, place] : [place], show, training };
};
