// Form controls with labels.

import { h, newId } from "./dom.js";

/** A control with its label. */
export function labelled(label, element, hint) {
  element.id ||= newId("field");
  const below = hint && h("p", { class: "hint", id: `${element.id}-hint` }, hint);
  if (below) element.setAttribute("aria-describedby", below.id);
  return h("div", { class: "field" }, h("label", { for: element.id }, label), element, below);
}

/** A select; options: `[value, text]`. */
export function choice(options, attributes = {}) {
  return h("select", attributes, options.map(([value, text]) => h("option", { value }, text)));
}

/** A button, with an icon before its text. */
export function button(text, attributes = {}, ...before) {
  return h("button", { type: "button", ...attributes }, ...before, h("span", {}, text));
}
