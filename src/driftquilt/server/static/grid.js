// A grid for the keyboard: one stop for the tab key, and from there arrows, Home and End.

const cellsOf = (row) => [...row.querySelectorAll("[tabindex]")];
const rowsOf = (grid) => [...grid.querySelectorAll("[role=row]")].filter((row) => cellsOf(row).length);
const column = (cell) => Number(cell.getAttribute("aria-colindex"));

const sideways = (cell, step) => {
  const row = cellsOf(cell.closest("[role=row]"));
  return row[row.indexOf(cell) + step];
};

const upDown = (grid, cell, step) => {
  const rows = rowsOf(grid);
  const row = rows[rows.indexOf(cell.closest("[role=row]")) + step];
  if (!row) return undefined;
  return cellsOf(row).reduce((best, other) =>
    Math.abs(column(other) - column(cell)) < Math.abs(column(best) - column(cell)) ? other : best);
};

const steps = {
  ArrowLeft: (grid, cell) => sideways(cell, -1),
  ArrowRight: (grid, cell) => sideways(cell, 1),
  ArrowUp: (grid, cell) => upDown(grid, cell, -1),
  ArrowDown: (grid, cell) => upDown(grid, cell, 1),
  Home: (grid, cell) => cellsOf(cell.closest("[role=row]"))[0],
  End: (grid, cell) => cellsOf(cell.closest("[role=row]")).at(-1),
};

/** Makes one cell the stop for the tab key. */
export const rove = (grid, cell) => {
  grid.querySelectorAll("[tabindex]").forEach((other) => {
    other.setAttribute("tabindex", other === cell ? 0 : -1);
  });
};

/** Wakes the grid; `onChoose(cell)` is called for Enter, Space and a click on a row. */
export const gridKeys = (grid, onChoose) => {
  rove(grid, cellsOf(rowsOf(grid).at(-1))[0]);
  grid.addEventListener("keydown", (event) => {
    const cell = event.target.closest("[tabindex]");
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      onChoose(cell);
    } else if (event.key in steps) {
      event.preventDefault();
      const next = steps[event.key](grid, cell);
      if (next) { rove(grid, next); next.focus(); }
    }
  });
  grid.addEventListener("click", (event) => {
    const row = event.target.closest("[role=row]");
    if (!row || !cellsOf(row).length) return;
    const cell = event.target.closest("[tabindex]") ?? cellsOf(row)[0];
    rove(grid, cell);
    cell.focus({ preventScroll: true });
    onChoose(cell);
  });
};
