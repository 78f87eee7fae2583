// What the page has to say: problems above the content, news to those who listen.

import { at, say } from "./elements.js";

let from = null;

/** Shows a problem of some work until that work succeeds, or another view opens. */
export const complain = (error, work) => {
  from = work;
  say(at("notice"), error.message);
  at("notice").hidden = false;
};

/** Takes back what was said of this work, or of any. */
export const stopComplaining = (work = from) => {
  if (work !== from) return;
  say(at("notice"), "");
  at("notice").hidden = true;
};

/** Tells a screen reader, when it is free. */
export const announce = (text) => { say(at("announcement"), text); };
