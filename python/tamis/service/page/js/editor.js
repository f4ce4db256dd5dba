// A field for text with colours and marks: a text area whose letters are highlighted by what lies below it.
// Both lie in one cell of a grid, which grows with the text, so that they never scroll apart.

import { h, newId } from "./dom.js";
import { highlighted } from "./highlight.js";

/** `parts` colours the text; `oninput()` is told of every change, `onsubmit()` of Ctrl+Enter. */
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
      // Marks speak of the text as it was; they come again with the next answer.
      marks = [];
      paint();
      oninput();
    },
    onkeydown: (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        onsubmit();
      }
    },
  });

  // A last line that is empty has a height only if something is on it.
  const paint = () => below.replaceChildren(...highlighted(area.value, parts, marks), "\n\u200b");

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
      paint();
    },
    /** Show these spots: `start`, `end`, `kind`. */
    mark(given) {
      marks = given;
      paint();
    },
    /** Whether what is in it is refused. */
    invalid(isSo) {
      area.setAttribute("aria-invalid", isSo);
    },
  };
  made.value = value;
  return made;
}

/** The spot that an error speaks of, as a mark: the character there, or the end of the text. */
export function spot(text, at) {
  const start = Math.min(at, text.length);
  const end = Math.min(text.length, start + (text.codePointAt(start) > 0xffff ? 2 : 1));
  return start < end && text[start] !== "\n"
    ? [{ start, end, kind: "wrong" }]
    : [{ start: Math.max(0, start - 1), end: start, kind: "wrong-after" }];
}
