// The report: the choice of a model and of a fold, the colours of patches, legends, sorted tables.
// This follows drawings.js in the same script.

const at = (id) => document.getElementById(id);
const quilt = document.querySelector("svg.live");

/** Shows the details of a model, by its number. */
const chooseModel = (number) => {
  at("drift-choice").value = number;
  all("section.drift").forEach((part) => { part.hidden = Number(part.dataset.drift) !== number; });
  all(".chart .drift").forEach((mark) =>
    mark.classList.toggle("chosen", mark.dataset.drift === String(number)));
  all(".row", quilt).forEach((row) => {
    const isChosen = Number(row.dataset.row) === number;
    row.classList.toggle("chosen", isChosen);
    row.setAttribute("aria-selected", isChosen);
  });
};

/** Shows the lines of one fold, or of all; the value of the select is the number of the view. */
const chooseFold = (select) => {
  const section = select.closest("section.drift");
  const isMean = select.value === "0";
  all(".view", section).forEach((view) =>
    view.classList.toggle("other", view.dataset.view !== select.value));
  section.querySelector(".fold-note").textContent = isMean
    ? "Lines and bound are means over folds; each fold has its own, which it was held against."
    : `Lines and bound are those of fold ${select.value}.`;
};

/** Makes the buttons of a legend hide and show the lines of the charts beside it. */
const wakeLegend = (legend) => {
  const charts = legend.closest(".charts");
  all("button", legend).forEach((button) => button.addEventListener("click", () => {
    const isShown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", isShown);
    all(`[data-line="${button.dataset.line}"]`, charts).forEach((part) => {
      if (part !== button) part.classList.toggle("off", !isShown);
    });
  }));
};

const cellValue = (row, column) => {
  const cell = row.cells[column];
  const value = cell.dataset.v;
  if (value === undefined) return cell.textContent.trim();
  return value === "" ? null : Number(value);
};

// Missing values come last, whichever way the table is sorted.
const compare = (a, b, sign) => {
  if (a === null || b === null) return (a === null) - (b === null);
  return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
};

/** Sorts a table by a column; a second time in the other direction. */
const sortBy = (head) => {
  const body = head.closest("table").tBodies[0];
  const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  all("th[aria-sort]", head.parentElement).forEach((other) => other.setAttribute("aria-sort", "none"));
  head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
  const rows = [...body.rows].map((row) => [cellValue(row, head.cellIndex), row]);
  rows.sort(([a], [b]) => compare(a, b, sign));
  body.append(...rows.map(([, row]) => row));
};

all("svg.chart").forEach(wakeChart);
all(".legend").forEach(wakeLegend);
all(".sort").forEach((button) =>
  button.addEventListener("click", () => sortBy(button.closest("th"))));
all(".fold-choice").forEach((select) => {
  select.closest(".pick").hidden = false;
  select.addEventListener("change", () => chooseFold(select));
});
if (quilt) {
  const models = all("section.drift");
  wakeQuilt(quilt, chooseModel);
  at("switch").hidden = false;
  at("switch").addEventListener("change", (event) =>
    quilt.classList.toggle("disparity", event.target.value === "disparity"));
  at("pick").hidden = models.length < 2;
  at("drift-choice").addEventListener("change", (event) => chooseModel(Number(event.target.value)));
  chooseModel(models.length - 1);
}
