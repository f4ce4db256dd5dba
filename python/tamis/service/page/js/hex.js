// A hex dump, sixteen bytes a line, with one byte marked.

import { h } from "./dom.js";

const WIDTH = 16;

/** Lines shown before and after the marked byte. */
const AROUND = 16;

/** `at`: the offset of the marked byte; null for none. */
export function dump(bytes, at) {
  const first = at === null ? 0 : Math.max(0, Math.floor(at / WIDTH) - AROUND);
  const last = Math.min(Math.ceil(bytes.length / WIDTH), first + 2 * AROUND + 1);
  const lines = [];
  for (let line = first; line < last; line++) {
    const start = line * WIDTH;
    const here = [...bytes.subarray(start, start + WIDTH)];
    const cells = here.map((byte, place) => marked(start + place === at, hex(byte, 2)));
    const letters = here.map((byte, place) => marked(start + place === at, byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·"));
    const gap = "   ".repeat(WIDTH - here.length);
    lines.push(`${hex(start, 8)}  `, ...cells.flatMap((cell) => [cell, " "]), `${gap} `, ...letters, "\n");
  }
  const left = bytes.length - (last - first) * WIDTH;
  return h("div", {}, h("pre", { class: "code hex", tabindex: "0" }, lines), left > 0 && h("p", { class: "hint" }, `${bytes.length} bytes in all`));
}

const hex = (value, width) => value.toString(16).padStart(width, "0");

const marked = (isMarked, text) => (isMarked ? h("mark", { class: "wrong" }, text) : text);
