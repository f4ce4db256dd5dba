// Text → elements with colours for its parts, and marks.

import { h } from "./dom.js";

/** Longer texts get marks only: colouring them would be slow. */
const MAX_LENGTH = 200_000;

/**
 * `parts`: text → `start`, `end`, `kind`, ascending and disjoint. `marks`: in the same form, but they may nest;
 * then the innermost is shown.
 */
export function highlighted(text, parts, marks = []) {
  const pieces = text.length > MAX_LENGTH ? [] : parts(text);
  const edges = new Set([0, text.length]);
  for (const { start, end } of [...pieces, ...marks]) edges.add(start).add(end);
  const cuts = [...edges].filter((at) => at <= text.length).sort((a, b) => a - b);
  const starts = [...marks].sort((a, b) => a.start - b.start || b.end - a.end);
  const open = [];
  const nodes = [];
  let piece = 0;
  let mark = 0;
  for (let at = 0; at + 1 < cuts.length; at++) {
    const [start, end] = [cuts[at], cuts[at + 1]];
    while (piece < pieces.length && pieces[piece].end <= start) piece++;
    while (mark < starts.length && starts[mark].start <= start) open.push(starts[mark++]);
    while (open.length && open.at(-1).end <= start) open.pop();
    const kinds = [];
    if (piece < pieces.length && pieces[piece].start <= start) kinds.push(`x-${pieces[piece].kind}`);
    if (open.length) kinds.push(open.at(-1).kind);
    const shown = text.slice(start, end);
    nodes.push(kinds.length ? h("span", { class: kinds.join(" ") }, shown) : shown);
  }
  return nodes;
}

/** A block of highlighted code. */
export function code(text, parts, marks) {
  return h("pre", { class: "code", tabindex: "0" }, h("code", {}, highlighted(text, parts, marks)));
}
