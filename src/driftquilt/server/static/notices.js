// What the page has to say: problems above the content, news to those who listen.

import { at, say } from "./elements.js";

const problems = new Map(); // sentences, by the work that met them; the last one is shown

const show = () => {
  const last = [...problems.values()].at(-1) ?? "";
  say(at("notice"), last);
  at("notice").hidden = last === "";
};

/** Shows a problem of some work until that work succeeds, or another view opens. */
export const complain = (text, work) => {
  problems.delete(work);
  problems.set(work, text);
  show();
};

/** Takes back what was said of this work. */
export const stopComplaining = (work) => {
  problems.delete(work);
  show();
};

/** Takes back everything. */
export const forgetProblems = () => {
  problems.clear();
  show();
};

/** Tells a screen reader, when it is free; by turns in two places, so that what is said twice is
 *  also read twice. */
export const announce = (text) => {
  const [first, second] = at("announcement").children;
  const [next, last] = first.textContent ? [second, first] : [first, second];
  next.textContent = text;
  last.textContent = "";
};
