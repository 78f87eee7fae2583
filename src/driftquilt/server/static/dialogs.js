// Two dialogs: "are you sure?", and why a selection is as it is. Escape closes both.

import { ask, streamPath } from "./api.js";
import { at, make, pairs } from "./elements.js";
import { isDialogOpen, openDialog } from "./focus.js";
import { count, decimals, duration } from "./words.js";

/** Whether the reader agrees; `action` is the word on the button that does it. */
export const confirmed = (title, text, action) => new Promise((resolve) => {
  const dialog = at("confirmation");
  at("confirmation-title").textContent = title;
  at("confirmation-text").textContent = text;
  at("confirmation-yes").textContent = action;
  dialog.returnValue = "no";
  at("confirmation-yes").onclick = () => dialog.close("yes");
  at("confirmation-no").onclick = () => dialog.close("no");
  openDialog(dialog, (value) => resolve(value === "yes"));
});

/** A selection in words: what it was, then a line for each past segment. */
export const explained = (selection) => {
  const lines = selection.explanation.split("\n").filter((line) => line.trim());
  const facts = pairs("facts", [
    ["current rows", count(selection.n_current)],
    ["validation loss", decimals(selection.validation_loss)],
    ["took", duration(selection.seconds)],
    ["model", selection.model === null ? "refused" : String(selection.model)],
  ]);
  if (!lines.length) return [facts, make("p", { class: "note" }, "Its explanation is not kept any more.")];
  const [first, ...rest] = lines;
  return [facts, make("p", {}, first),
    rest.length ? make("ul", {}, rest.map((line) => make("li", {}, line))) : ""];
};

/** Opens the explanation of a selection; a problem is the caller's. */
export const openExplanation = async (name, number, signal) => {
  const selection = await ask(streamPath(name, "selections", number), signal);
  if (isDialogOpen()) return;
  at("explanation-title").textContent = `Selection at row ${count(selection.row)}`;
  at("explanation-body").replaceChildren(...explained(selection));
  at("explanation-close").onclick = () => at("explanation").close();
  openDialog(at("explanation"));
  at("explanation-body").scrollTop = 0;
};

export const closeDialogs = () => {
  document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close("no"));
};
