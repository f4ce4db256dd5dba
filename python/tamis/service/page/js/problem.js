// Errors: the reason, and for a position the line with a pointer below it.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { indexOf } from "./utf8.js";

const WIDTH = 64;

/** An error without a position; `title` where it is not the refusal of a request. */
export function problem(error) {
  const headline = error.title ?? (error.status === 403 ? "Not allowed" : error.status === 0 ? "Unreachable" : "Refused");
  return h(
    "div",
    { class: "problem", role: "alert" },
    icon("alert"),
    h("div", {}, h("strong", {}, headline), h("p", {}, error.reason ?? error.message)),
  );
}

/** An error with a position in a text. */
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

/** The line of a position, or a part of it, and a pointer below. */
export function pointed(text, at) {
  const begin = text.lastIndexOf("\n", at - 1) + 1;
  const end = text.indexOf("\n", at) === -1 ? text.length : text.indexOf("\n", at);
  // By characters: the pointer is below one of them.
  const before = [...text.slice(begin, at)];
  const after = [...text.slice(at, end)];
  const cut = Math.max(0, before.length - WIDTH / 2);
  const shown = [...before.slice(cut), ...after.slice(0, WIDTH / 2)].join("").replaceAll("\t", " ");
  const lead = cut ? "…" : "";
  return `${lead}${shown}${after.length > WIDTH / 2 ? "…" : ""}\n${" ".repeat(lead.length + before.length - cut)}^`;
}
