// The keyboard: a few keys that do something wherever nothing is being typed.

import { go } from "./address.js";
import { dialog } from "./dialog.js";
import { h } from "./dom.js";

/** Keys of views go by their place in the menu; an element with `data-key` is for a key of its own. */
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
    ["Ctrl Enter", "in a text: subscribe, publish"],
    ["?", "this list"],
  ];
  const rows = keys.flatMap(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]);
  const close = h("button", { type: "submit" }, "Close");
  const node = dialog("Keys", h("dl", { class: "keys" }, rows), [close], () => node.close());
}
