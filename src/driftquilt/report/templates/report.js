"use strict";
// The quilt and the choice of a drift: what moves on the page.

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const quilt = document.querySelector("svg.live");
  const tip = at("tip");
  const state = { drift: data.drifts.length - 1, fold: "mean", printing: false };

  const { drawAccuracy, drawScores } = makeCharts(data, state);
  const drawAll = () => { drawAccuracy(); drawScores(); };

  // The choice of a drift.

  const fillFolds = () => {
    const folds = data.drifts[state.drift].folds;
    state.fold = "mean";
    at("fold-pick").hidden = folds.length < 2;
    at("fold-choice").replaceChildren(
      new Option("mean of all", "mean"),
      ...folds.map((_, k) => new Option(`${k + 1} of ${folds.length}`, k)),
    );
  };

  const choose = (number) => {
    state.drift = number;
    at("drift-choice").value = number;
    at("scores-name").textContent = `, for ${data.drifts[number].name}`;
    all(".drift").forEach((part) => { part.hidden = Number(part.dataset.drift) !== number; });
    all(".row", quilt).forEach((row) => {
      const chosen = Number(row.dataset.drift) === number;
      row.classList.toggle("chosen", chosen);
      all("[role=button]", row).forEach((button) => button.setAttribute("aria-pressed", chosen));
    });
    fillFolds();
    drawAll();
  };

  // The patches: one stop for the tab key, arrows from there.

  const driftOf = (button) => Number(button.closest(".row").dataset.drift);
  const buttons = () => all("[role=button]", quilt);

  const rove = (button) => {
    buttons().forEach((other) => { other.tabIndex = other === button ? 0 : -1; });
  };

  const middle = (button) => {
    const box = button.getBoundingClientRect();
    return box.left + box.width / 2;
  };

  const sideways = (button, step) => {
    const row = all("[role=button]", button.closest(".row"));
    return row[row.indexOf(button) + step];
  };

  const upDown = (button, step) => {
    const row = all(".row", quilt)[driftOf(button) + step];
    if (!row) return undefined;
    const x = middle(button);
    return all("[role=button]", row).reduce((best, other) =>
      Math.abs(middle(other) - x) < Math.abs(middle(best) - x) ? other : best);
  };

  const steps = {
    ArrowLeft: (button) => sideways(button, -1), ArrowRight: (button) => sideways(button, 1),
    ArrowUp: (button) => upDown(button, -1), ArrowDown: (button) => upDown(button, 1),
    Home: (button) => all("[role=button]", button.closest(".row"))[0],
    End: (button) => all("[role=button]", button.closest(".row")).at(-1),
  };

  const onKey = (event) => {
    const button = event.target.closest("[role=button]");
    if (!button) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(driftOf(button));
    } else if (event.key in steps) {
      event.preventDefault();
      const next = steps[event.key](button);
      if (next) { rove(next); next.focus(); }
    }
  };

  const line = (tag, text) => {
    const element = document.createElement(tag);
    element.textContent = text;
    return element;
  };

  const pair = ([name, value]) => {
    const element = document.createElement("div");
    element.append(line("span", name), line("span", value));
    return element;
  };

  let tipped = null;

  const showTip = (button) => {
    const drift = data.drifts[driftOf(button)];
    const segment = drift.segments[Number(button.dataset.segment)];
    if (!segment) return hideTip();
    tip.replaceChildren(
      line("strong", segment.name),
      line("em", `${segment.word}, for ${drift.name}`),
      ...segment.told.map(pair),
    );
    tip.hidden = false;
    tipped = button;
    const box = button.getBoundingClientRect();
    const left = Math.min(Math.max(box.left + box.width / 2 - tip.offsetWidth / 2, 8),
      document.documentElement.clientWidth - tip.offsetWidth - 8);
    const above = box.top - tip.offsetHeight - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < 8 ? box.bottom + 8 : above}px`;
    return undefined;
  };

  const hideTip = () => { tip.hidden = true; };

  const tipOn = (event) => {
    const button = event.target.closest("[role=button]");
    if (button) showTip(button); else hideTip();
  };

  const wakeQuilt = () => {
    rove(all(".row", quilt).at(-1).querySelector("[role=button]"));
    quilt.addEventListener("keydown", onKey);
    quilt.addEventListener("pointerover", tipOn);
    quilt.addEventListener("pointerleave", hideTip);
    quilt.addEventListener("focusin", tipOn);
    quilt.addEventListener("focusout", hideTip);
    quilt.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (!row) return;
      const button = event.target.closest("[role=button]");
      if (button) { rove(button); button.focus({ preventScroll: true }); }
      choose(Number(row.dataset.drift));
    });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
    // A patch that scrolls takes its tip along; one that leaves the pointer says so itself.
    document.addEventListener("scroll", () => { if (!tip.hidden) showTip(tipped); },
      { capture: true, passive: true });
    at("switch").hidden = false;
    at("switch").addEventListener("change", (event) => {
      quilt.classList.toggle("far", event.target.value === "far");
    });
    at("drift-pick").hidden = data.drifts.length < 2;
    at("pick").hidden = data.drifts.length < 2 && data.drifts[0].folds.length < 2;
    at("drift-choice").addEventListener("change", (event) => choose(Number(event.target.value)));
    at("fold-choice").addEventListener("change", (event) => {
      state.fold = event.target.value;
      drawScores();
    });
  };

  // Colours follow the reader; paper is always white.

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  const printing = (now) => {
    state.printing = now;
    document.documentElement.classList.toggle("by-day", now);
    drawAll();
  };
  addEventListener("beforeprint", () => printing(true));
  addEventListener("afterprint", () => printing(false));
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 150);
  });

  if (quilt) {
    wakeQuilt();
    choose(state.drift);
  } else {
    drawAccuracy();
  }
})();
