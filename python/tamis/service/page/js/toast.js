// Short notices at the edge of the window, which disappear; screen readers announce them.

import { h } from "./dom.js";

const MILLISECONDS = 5000;

export function toast(text, kind = "done") {
  const node = h("div", { class: `toast ${kind}` }, text);
  document.getElementById("toasts").append(node);
  setTimeout(() => node.remove(), MILLISECONDS);
}

/** Show an error. */
export const failed = (error) => toast(error.reason ?? String(error), "failed");
