// An error, told plainly: what is wrong, where, and the line with a pointer below the spot.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { indexOf } from "./utf8.js";

const WIDTH = 64;

/** An error that has no place in a text. */
export function problem(error) {
  const headline = error.status === 403 ? "Not allowed" : error.status === 0 ? "Unreachable" : "Refused";
  return h(
    "div",
    { class: "problem", role: "alert" },
    icon("alert"),
    h("div", {}, h("strong", {}, headline), h("p", {}, error.reason ?? error.message)),
  );
}

/** An error in a text, with its line and the spot. */
export function located(error, text) {
  const { line, column, offset } = error.position;
  const at = indexOf(text, offset);
  return h(
    "div",
    { class: "located" },
    h("p", {}, h("span", { class: "place" }, `${line}:${column}`), " ", error.reason),
    h("pre", { class: "pointer", "aria-hidden": "true" }, pointed(text, at)),
  );
}

/** The line of a spot, or what is around it, and below it the pointer. */
export function pointed(text, at) {
  const begin = text.lastIndexOf("\n", at - 1) + 1;
  const end = text.indexOf("\n", at) === -1 ? text.length : text.indexOf("\n", at);
  // By characters, as a pointer is set below one of them.
  const before = [...text.slice(begin, at)];
  const after = [...text.slice(at, end)];
  const cut = Math.max(0, before.length - WIDTH / 2);
  const shown = [...before.slice(cut), ...after.slice(0, WIDTH / 2)].join("").replaceAll("\t", " ");
  const lead = cut ? "…" : "";
  return `${lead}${shown}${after.length > WIDTH / 2 ? "…" : ""}\n${" ".repeat(lead.length + before.length - cut)}^`;
}
