// The models that can be used again, with buttons for those who may: promote, roll back, adapt.

import { post, streamPath } from "./api.js";
import { confirmed } from "./dialogs.js";
import { make, scroller } from "./elements.js";
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
    onclick: () => promote(model.version),
  }, "use")) : null);

/** The table and the buttons; `tried` runs what may fail, `changed` what follows. */
export const modelPart = (name, mayChange, tried, changed) => {
  const place = scroller("tall", "Models");
  const act = (title, text, action, path, words) => tried(async () => {
    if (!await confirmed(title, text, action)) return;
    const answer = await post(path);
    announce(words(answer));
    changed();
  });
  const promote = (version) => act(`Use model ${version}?`,
    "It answers from now on; the model in use stays and can be used again.", "Use it",
    streamPath(name, "models", version, "promote"), ({ model }) => `Model ${model} is in use`);
  const rollBack = make("button", {
    type: "button", disabled: true, onclick: () => act("Roll back?",
      "The model that was in use before answers from now on.", "Roll back",
      streamPath(name, "models", "rollback"), ({ model }) => `Rolled back to model ${model}`),
  }, "Roll back");
  const adapt = make("button", {
    type: "button", onclick: () => act("Adapt now?",
      "A model is trained on the current rows and what still agrees with them.", "Adapt",
      streamPath(name, "adapt"), () => "Training has begun"),
  }, "Adapt now");

  const show = (models) => {
    rollBack.disabled = models.length < 2;
    if (!models.length) {
      place.replaceChildren(make("p", { class: "note" }, "There is no model yet."));
      return;
    }
    const newestFirst = [...models].sort((a, b) => b.version - a.version);
    place.replaceChildren(make("table", {},
      make("caption", { class: "sr" }, "Models that can be used again, newest first"),
      make("thead", {}, make("tr", {},
        HEADS.map(([words, kind]) => make("th", { scope: "col", class: kind }, words)),
        mayChange ? make("th", { scope: "col" }, make("span", { class: "sr" }, "Change")) : null)),
      make("tbody", {}, newestFirst.map((model) => row(model, mayChange ? promote : null)))));
  };
  const buttons = mayChange ? [make("p", { class: "buttons" }, rollBack, adapt)] : [];
  return { elements: [...buttons, place], show, training: (now) => { adapt.disabled = now; } };
};
