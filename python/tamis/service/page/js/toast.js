// A word at the edge of the window, gone after a moment; screen readers are told.

import { h } from "./dom.js";

const MILLISECONDS = 5000;

export function toast(text, kind = "done") {
  const node = h("div", { class: `toast ${kind}` }, text);
  document.getElementById("toasts").append(node);
  setTimeout(() => node.remove(), MILLISECONDS);
}

/** Say what went wrong. */
export const failed = (error) => toast(error.reason ?? String(error), "failed");
