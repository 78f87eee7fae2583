// Numbers, times and sentences as text.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const moment = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });

/** A whole number, or a dash for a missing one. */
export const count = (value) => (value === null ? "–" : whole.format(value));

export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** A number with decimals, or a dash for a missing one. */
export const decimals = (value, digits = 3) =>
  value === null || value === undefined ? "–" : value.toFixed(digits);

const significant = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

/** What a stream has of late: accuracy of classes, the error of numbers; its name and its value. */
export const recentWords = (stream) => (stream.task === "regression"
  ? ["recent mean absolute error", amount(stream.recent_mean_absolute_error)]
  : ["recent accuracy", decimals(stream.recent_accuracy)]);

/** A number of any size, or a dash for a missing one. */
const amount = (value) => (value === null ? "–" : significant.format(value));

/** The name of a metric as people say it. */
export const metricWords = (name) =>
  ({ roc_auc: "AUC", f1: "F1" })[name] ?? name.replace(/^neg_/, "").replaceAll("_", " ");

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
