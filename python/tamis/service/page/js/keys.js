// Keyboard shortcuts, active outside of inputs.

import { go } from "./address.js";
import { dialog } from "./dialog.js";
import { h } from "./dom.js";

/** Digits select views in the order of the menu; an element with `data-key` has its own key. */
export function listenToKeys(views) {
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector("dialog[open]") || event.target.closest("input, textarea, select")) return;
    const view = views[Number(event.key) - 1];
    const element = /^[a-z/]$/.test(event.key) && document.querySelector(`[data-key="${event.key}"]`);
    if (view) go(view.name);
    else if (event.key === "?") help(views);
    else if (element) (element.matches("input, textarea") ? element.focus() : element.click());
    else return;
    event.preventDefault();
  };
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}

function help(views) {
  const keys = [
    ...views.map((view, place) => [place + 1, view.title]),
    ["/", "search"],
    ["n", "a new subscription"],
    ["Ctrl Enter", "in a text: subscribe or publish"],
    ["?", "this list"],
  ];
  const rows = keys.flatMap(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]);
  const close = h("button", { type: "submit" }, "Close");
  const node = dialog("Keys", h("dl", { class: "keys" }, rows), [close], () => node.close());
}
