// Two dialogs: "are you sure?", and why a selection is as it is. Escape closes both, and the focus
// returns to where it was, also if that was drawn again meanwhile.

import { ask, streamPath } from "./service.js";
import { at, make, pairs } from "./elements.js";
import { count, decimals, duration } from "./words.js";

let opener = null; // gets the focus back when the dialog closes

/** What within a place has the focus, or gets it back when the dialog closes; null if nothing. */
export const focusedIn = (place) => {
  const element = opener ?? document.activeElement;
  return place.contains(element) ? element : null;
};

/** Gives the focus to an element, now or when the dialog closes. */
export const giveFocus = (element) => {
  if (opener === null) element.focus({ preventScroll: true });
  else opener = element;
};

/** Opens a dialog; `onClose` gets the value it was closed with. */
const openDialog = (dialog, onClose = () => {}) => {
  opener = document.activeElement;
  dialog.onclose = () => {
    const back = opener;
    opener = null;
    // The browser does this too, but not if the element was drawn again meanwhile.
    if (back.isConnected) back.focus({ preventScroll: true });
    onClose(dialog.returnValue);
  };
  dialog.showModal();
};

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
  if (!lines.length) return [facts, make("p", { class: "note" }, "Its explanation is no longer available.")];
  const [first, ...rest] = lines;
  return [facts, make("p", {}, first),
    rest.length ? make("ul", {}, rest.map((line) => make("li", {}, line))) : ""];
};

/** Opens the explanation of a selection. */
export const openExplanation = async (name, number, signal) => {
  const selection = await ask(streamPath(name, "selections", number), signal);
  if (opener !== null) return;
  at("explanation-title").textContent = `Selection at row ${count(selection.row)}`;
  at("explanation-body").replaceChildren(...explained(selection));
  at("explanation-close").onclick = () => at("explanation").close();
  openDialog(at("explanation"));
  at("explanation-body").scrollTop = 0;
};

export const closeDialogs = () => {
  document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close("no"));
};
