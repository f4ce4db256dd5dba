// Numbers and times as text.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** A count. */
export const count = (value) => (value < 100_000 ? whole : short).format(value);

/** A rate per second. */
export function rate(value) {
  if (value >= 10_000) return short.format(value);
  return value >= 100 ? whole.format(value) : value.toFixed(value >= 10 || value === 0 ? 0 : 1);
}

/** A part of a whole, in percent. */
export const share = (part, whole) => (whole ? `${Math.round((100 * part) / whole)} %` : "0 %");

/** A size. */
export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const place = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3));
  return `${short.format(value / 1000 ** place)} ${units[place]}`;
}

/** A duration. */
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  return value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(value < 10 ? 1 : 0)} s`;
}

/** A count with its noun. */
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/** The time of day; with the date if it is not today. */
export function time(text) {
  const when = new Date(text);
  const clock = when.toLocaleTimeString("en-GB");
  return when.toDateString() === new Date().toDateString() ? clock : `${when.toLocaleDateString("en-CA")} ${clock}`;
}

/** A text cut to a length. */
export const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
