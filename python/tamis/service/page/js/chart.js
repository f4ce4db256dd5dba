// Line charts over time, as SVG. The newest sample is on the right; the axis fits the values.

import { h, svg } from "./dom.js";

const HEIGHT = 180;
const EDGE = { top: 12, right: 12, bottom: 24, left: 48 };

/** `series`: `name` (the field of a sample), `label`, `kind` (the colour). `format`: value → text. */
export function chart({ label, series, seconds, format }) {
  const drawing = svg("svg", { class: "chart", role: "img", height: HEIGHT, "aria-label": label });
  const values = series.map(() => h("b", {}, "–"));
  const legend = series.map(({ label: name, kind }, place) => h("li", { class: kind }, name, " ", values[place]));
  const node = h("figure", { class: "card" }, h("figcaption", {}, label, h("ul", { class: "legend" }, legend)), drawing);
  let samples = [];
  let pointed = null;

  function draw() {
    const width = drawing.clientWidth || 600;
    const inner = { width: width - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
    const newest = samples.at(-1)?.time ?? 0;
    const highest = nice(Math.max(0, ...samples.flatMap((one) => series.map(({ name }) => one[name]))));
    const x = (one) => EDGE.left + inner.width * (1 - (newest - one.time) / seconds);
    const y = (value) => EDGE.top + inner.height * (1 - value / highest);
    const seen = samples.filter((one) => newest - one.time <= seconds);
    const at = pointed === null ? null : nearest(seen, (one) => Math.abs(x(one) - pointed));
    // Of small whole numbers, the middle would be rounded to the label below or above it.
    const hasOwnLabel = (share) => share !== 0.5 || ![0, highest].some((end) => format(end) === format(highest / 2));
    drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawing.replaceChildren(
      ...[0, 0.5, 1].filter(hasOwnLabel).flatMap((share) => {
        const height = y(share * highest);
        const line = { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: height, y2: height };
        const text = { class: "tick", x: EDGE.left - 8, y: height + 4, "text-anchor": "end" };
        return [svg("line", line), svg("text", text, format(share * highest))];
      }),
      ...[0, 0.5, 1].map((share) => {
        const anchor = ["start", "middle", "end"][share * 2];
        const text = { class: "tick", x: EDGE.left + inner.width * share, y: HEIGHT - 6, "text-anchor": anchor };
        return svg("text", text, share === 1 ? "now" : `−${seconds * (1 - share)} s`);
      }),
      ...series.flatMap(({ name, kind }, place) => {
        if (seen.length < 2) return [];
        const line = seen.map((one) => `${x(one).toFixed(1)},${y(one[name]).toFixed(1)}`).join(" ");
        const area = `${x(seen[0])},${y(0)} ${line} ${x(seen.at(-1))},${y(0)}`;
        const drawn = svg("polyline", { class: `line ${kind}`, points: line });
        // Only below the first line: overlapping areas would hide each other.
        return place ? [drawn] : [svg("polygon", { class: `area ${kind}`, points: area }), drawn];
      }),
      ...(at ? [svg("line", { class: "cursor", x1: x(at), x2: x(at), y1: EDGE.top, y2: y(0) })] : []),
    );
    const sample = at ?? seen.at(-1);
    series.forEach(({ name }, place) => {
      values[place].textContent = sample ? format(sample[name]) : "–";
    });
  }

  drawing.addEventListener("pointermove", (event) => {
    pointed = event.offsetX;
    draw();
  });
  drawing.addEventListener("pointerleave", () => {
    pointed = null;
    draw();
  });
  new ResizeObserver(draw).observe(drawing);
  return {
    node,
    show(given) {
      samples = given;
      draw();
    },
  };
}

/** A line without axes, for a tile. */
export function sparkline(kind) {
  const line = svg("polyline", { class: `line ${kind}`, "vector-effect": "non-scaling-stroke" });
  const attributes = { class: "sparkline", viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" };
  const node = svg("svg", attributes, line);
  return {
    node,
    show(values) {
      const highest = Math.max(...values, 1e-9);
      const step = 100 / Math.max(values.length - 1, 1);
      const points = values.map((value, place) => `${(place * step).toFixed(1)},${(28 - (26 * value) / highest).toFixed(1)}`);
      line.setAttribute("points", points.join(" "));
    },
  };
}

const nearest = (all, far) => all.reduce((best, one) => (best === null || far(one) < far(best) ? one : best), null);

/** Round up to 1, 2 or 5 times a power of ten. */
function nice(value) {
  if (value <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * unit).find((step) => step >= value);
}
