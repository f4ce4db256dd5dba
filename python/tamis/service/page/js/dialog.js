// Modal dialogs. The browser keeps the focus inside, and Escape closes them.

import { h, newId } from "./dom.js";

/** A dialog with a form; `actions`: its buttons. It is removed when it closes. */
export function dialog(title, content, actions, onsubmit) {
  const id = newId("dialog");
  const form = h(
    "form",
    {
      method: "dialog",
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        onsubmit();
      },
    },
    h("h2", { id }, title),
    content,
    h("div", { class: "actions" }, actions),
  );
  const node = h("dialog", { "aria-labelledby": id, onclose: () => node.remove() }, form);
  document.body.append(node);
  node.showModal();
  return node;
}

/** Ask for confirmation; resolves to true or false. */
export function confirmed(title, text, verb) {
  return new Promise((answer) => {
    const cancel = h("button", { type: "button", class: "plain", onclick: () => node.close() }, "Cancel");
    const go = h("button", { type: "submit", class: "danger", autofocus: true }, verb);
    const node = dialog(title, h("p", {}, text), [cancel, go], () => node.close("yes"));
    node.addEventListener("close", () => answer(node.returnValue === "yes"));
  });
}
