"use strict";
// Tables are sorted by a click on the head of a column; a second click turns them round.

(() => {
  const all = (query, within = document) => [...within.querySelectorAll(query)];

  const cellValue = (row, column) => {
    const cell = row.cells[column];
    const value = cell.dataset.v;
    if (value === undefined) return cell.textContent.trim();
    return value === "" ? null : Number(value);
  };

  // What is not known comes last, whichever way the table is sorted.
  const compare = (a, b, sign) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
  };

  const sortBy = (head) => {
    const body = head.closest("table").tBodies[0];
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    all("th[aria-sort]", head.parentElement).forEach((other) =>
      other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const rows = [...body.rows].map((row) => [cellValue(row, head.cellIndex), row]);
    rows.sort(([a], [b]) => compare(a, b, sign));
    body.append(...rows.map(([, row]) => row));
  };

  all(".sort").forEach((button) =>
    button.addEventListener("click", () => sortBy(button.closest("th"))));
})();
