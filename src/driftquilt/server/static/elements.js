// Elements made from values: a child that is text stays text, whatever it says.

const SVG = "http://www.w3.org/2000/svg";

export const at = (id) => document.getElementById(id);

const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
};

/** An HTML element; an attribute that is null or false is left out, `onclick` is a listener. */
export const make = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

/** The same in a picture. */
export const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

/** Names with their values, as a description list. */
export const pairs = (kind, entries) =>
  make("dl", { class: kind }, entries.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));

/** A part of the page with its heading. */
export const section = (id, title, ...children) =>
  make("section", { class: id, "aria-labelledby": `${id}-heading` },
    make("h2", { id: `${id}-heading` }, title), ...children);

/** A part that scrolls by itself, which the keyboard reaches too. */
export const scroller = (kind, label, ...children) =>
  make("div", { class: kind, role: "group", tabindex: 0, "aria-label": label }, ...children);

/** New text, only where it is new: whoever listens to the element is not told twice. */
export const say = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

/** Draws again whenever a place has got another width, until the signal. */
export const whenResized = (place, redraw, signal) => {
  let width = place.clientWidth;
  const watcher = new ResizeObserver(() => {
    if (place.clientWidth === width) return;
    width = place.clientWidth;
    redraw();
  });
  watcher.observe(place);
  signal.addEventListener("abort", () => watcher.disconnect());
};
