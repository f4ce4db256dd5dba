// The icons: 24 units, stroked in the colour of the text.

import { svg } from "./dom.js";

const LINES = {
  now: "M3 12h4l3-7 4 14 3-7h4",
  subscriptions: "M4 6h16M4 12h16M4 18h10",
  playground: "M9 3v6L4 19a1.5 1.5 0 0 0 1.4 2h13.2a1.5 1.5 0 0 0 1.4-2L15 9V3M8 3h8M7 15h10",
  publish: "M12 16V4M7 9l5-5 5 5M4 16v3a1 1 0 0 0 1 1h14a1 1 0 0 0 1-1v-3",
  deliveries: "M3 13l3-8h12l3 8v6H3zM3 13h5l1.5 3h5L16 13h5",
  letters: "M3 6h18v13H3zM3 7l9 7 9-7",
  network: "M5 3h4v4H5zM15 10h4v4h-4zM5 17h4v4H5zM9 5h4v14H9M13 12h2",
  out: "M14 4h5a1 1 0 0 1 1 1v14a1 1 0 0 1-1 1h-5M10 8l-4 4 4 4M6 12h10",
  plus: "M12 5v14M5 12h14",
  pause: "M9 5v14M15 5v14",
  resume: "M8 5l11 7-11 7z",
  edit: "M4 20l1-5L16 4l4 4L9 19zM14 6l4 4",
  remove: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  try: "M5 12h13M13 7l5 5-5 5",
  check: "M5 13l4 4L19 7",
  cross: "M6 6l12 12M18 6L6 18",
  replay: "M4 12a8 8 0 1 0 3-6.2M4 4v4h4",
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM16 16l5 5",
  alert: "M12 4l9 16H3zM12 10v4M12 17v.5",
};

/** A decorative icon: its meaning is in the text beside it, or in the label of its button. */
export function icon(name) {
  const shape = svg("path", { d: LINES[name] });
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true", focusable: "false" }, shape);
}

/** The logo: a sieve, and what falls through it. */
export function mark() {
  return svg(
    "svg",
    { class: "mark", viewBox: "0 0 32 32", "aria-hidden": "true", focusable: "false" },
    svg("circle", { cx: 16, cy: 12, r: 9 }),
    svg("path", { class: "mesh", d: "M12 4v16M16 3v18M20 4v16M8 8h16M7 12h18M8 16h16" }),
    [11, 16, 21].map((x, place) => svg("circle", { class: "grain", cx: x, cy: place === 1 ? 29 : 26, r: 1.7 })),
  );
}
