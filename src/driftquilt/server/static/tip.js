// A small note beside whatever is pointed at or focused; Escape takes it away.

import { at, make } from "./elements.js";

const GAP = 8;
let about = null;

const place = () => {
  const tip = at("tip");
  const box = about.getBoundingClientRect();
  const most = document.documentElement.clientWidth - tip.offsetWidth - GAP;
  const left = Math.max(Math.min(box.left + box.width / 2 - tip.offsetWidth / 2, most), GAP);
  const above = box.top - tip.offsetHeight - GAP;
  tip.style.left = `${left}px`;
  tip.style.top = `${above < GAP ? box.bottom + GAP : above}px`;
};

/** Shows lines of [name, value] under a heading, above the element or below it. */
export const showTip = (element, heading, lines) => {
  const tip = at("tip");
  about = element;
  tip.replaceChildren(
    make("strong", {}, heading),
    ...lines.map(([name, value]) => make("div", {}, make("span", {}, name), make("span", {}, value))),
  );
  tip.hidden = false;
  place();
};

export const hideTip = () => { at("tip").hidden = true; };

document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
// The focus scrolls what gets it into view, and its tip goes along; a pointer is elsewhere then.
document.addEventListener("scroll", () => {
  if (at("tip").hidden) return;
  if (about === document.activeElement) place();
  else hideTip();
}, { capture: true, passive: true });
