// A small note beside whatever is pointed at or focused; Escape takes it away.

import { at, make } from "./elements.js";

const GAP = 8;

/** Shows lines of [name, value] under a heading, above the box or below it. */
export const showTip = (box, heading, lines) => {
  const tip = at("tip");
  tip.replaceChildren(
    make("strong", {}, heading),
    ...lines.map(([name, value]) => make("div", {}, make("span", {}, name), make("span", {}, value))),
  );
  tip.hidden = false;
  const most = document.documentElement.clientWidth - tip.offsetWidth - GAP;
  const left = Math.max(Math.min(box.left + box.width / 2 - tip.offsetWidth / 2, most), GAP);
  const above = box.top - tip.offsetHeight - GAP;
  tip.style.left = `${left}px`;
  tip.style.top = `${above < GAP ? box.bottom + GAP : above}px`;
};

export const hideTip = () => { at("tip").hidden = true; };

document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
document.addEventListener("scroll", hideTip, { capture: true, passive: true });
