// Numbers as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const moment = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });

/** A whole number, or a dash for what is not known. */
export const count = (value) => (value === null ? "–" : whole.format(value));

export const counted = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** A share; one above zero never reads as none. */
export const percent = (share) =>
  share > 0 && share < 0.005 ? "<1%" : `${Math.round(share * 100)}%`;

/** A number between 0 and 1, or a dash for what is not known. */
export const decimals = (value, digits = 3) =>
  value === null || value === undefined ? "–" : value.toFixed(digits);

export const signed = (value) =>
  value === null || value === undefined ? "–" : `${value < 0 ? "−" : "+"}${Math.abs(value).toPrecision(2)}`;

/** Seconds in the unit that leaves few digits. */
export const duration = (seconds) => {
  const units = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];
  const [size, unit] = units.find(([least]) => seconds >= least) ?? [0.001, "ms"];
  const value = seconds / size;
  return `${value >= 10 ? count(value) : Number(value.toFixed(1))} ${unit}`;
};

export const bytes = (n) => {
  const units = [[1 << 30, "GiB"], [1 << 20, "MiB"], [1 << 10, "KiB"]];
  const [size, unit] = units.find(([least]) => n >= least) ?? [1, "bytes"];
  return `${size === 1 ? n : (n / size).toFixed(1)} ${unit}`;
};

export const time = (iso) => moment.format(new Date(iso));

/** With a capital first and a full stop last. */
export const sentence = (text) => {
  const trimmed = text.trim();
  const whole = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
};
