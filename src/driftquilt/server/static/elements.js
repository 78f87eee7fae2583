// Elements made from values: a child that is text stays text, whatever it says. Below them what the
// page reports: problems above the content, news to screen readers.

export const at = (id) => document.getElementById(id);

/** An HTML element; an attribute that is null or false is left out, `onclick` is a listener. */
export const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
};

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

/** Sets a text if it is new, so that screen readers do not read the same text again. */
export const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

/** Calls `redraw` whenever the width of a place changes, until the signal. */
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

const problems = new Map(); // sentences by the task that met them; the last one is shown

const showLast = () => {
  const last = [...problems.values()].at(-1) ?? "";
  setText(at("notice"), last);
  at("notice").hidden = last === "";
};

/** Shows a problem of a task until the task succeeds, or another view opens. */
export const showProblem = (text, task) => {
  problems.delete(task);
  problems.set(task, text);
  showLast();
};

/** Removes the problem of a task. */
export const clearProblem = (task) => {
  problems.delete(task);
  showLast();
};

/** Removes all problems. */
export const clearProblems = () => {
  problems.clear();
  showLast();
};

/** Announces a text to screen readers; by turns in two places, so that the same text is read again. */
export const announce = (text) => {
  const [first, second] = at("announcement").children;
  const [next, last] = first.textContent ? [second, first] : [first, second];
  next.textContent = text;
  last.textContent = "";
};
