// A text area with syntax colours and marks: a transparent text area above a highlighted copy of its text.
// Both are in one cell of a grid, which grows with the text, so that they never scroll apart.

import { h, newId } from "./dom.js";
import { highlighted } from "./highlight.js";

/** `parts`: text → coloured parts. `oninput()`: after every change. `onsubmit()`: on Ctrl+Enter. */
export function editor({ label, parts, value = "", rows = 3, hint, oninput = () => {}, onsubmit = () => {} }) {
  const id = newId("editor");
  const below = h("code");
  let marks = [];
  const area = h("textarea", {
    id,
    rows,
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    "aria-describedby": hint && `${id}-hint`,
    oninput: () => {
      // The marks belong to the old text; the next response sets new ones.
      marks = [];
      render();
      oninput();
    },
    onkeydown: (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        onsubmit();
      }
    },
  });

  // An empty last line needs a character to have a height.
  const render = () => below.replaceChildren(...highlighted(area.value, parts, marks), "\n\u200b");

  const node = h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    h("div", { class: "editor" }, h("pre", { "aria-hidden": "true" }, below), area),
    hint && h("p", { class: "hint", id: `${id}-hint` }, hint),
  );
  const made = {
    node,
    area,
    get value() {
      return area.value;
    },
    set value(text) {
      area.value = text;
      marks = [];
      render();
    },
    /** Set the marks: `start`, `end`, `kind`. */
    mark(given) {
      marks = given;
      render();
    },
    /** Whether the text is refused. */
    invalid(isSo) {
      area.setAttribute("aria-invalid", isSo);
    },
  };
  made.value = value;
  return made;
}

/** The position of an error as a mark: the character there, or the end of the text. */
export function spot(text, at) {
  const start = Math.min(at, text.length);
  const end = Math.min(text.length, start + (text.codePointAt(start) > 0xffff ? 2 : 1));
  return start < end && text[start] !== "\n"
    ? [{ start, end, kind: "wrong" }]
    : [{ start: Math.max(0, start - 1), end: start, kind: "wrong-after" }];
}
