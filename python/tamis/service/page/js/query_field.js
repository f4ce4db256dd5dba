// A query, checked as it is typed: what is wrong with it is marked in the text and told below it.

import { check } from "./api.js";
import { debounced, h, hold } from "./dom.js";
import { editor, spot } from "./editor.js";
import { read } from "./namespaces.js";
import { located, problem } from "./problem.js";
import { queryParts } from "./query.js";
import { indexOf } from "./utf8.js";

const PAUSE = 150;

/**
 * A field for a query. `namespaces()` gives the text of its prefixes. `onchecked(found)` is told what came of
 * each check: the query, or null if it is none.
 */
export function queryField({ value, namespaces, onchecked = () => {}, onsubmit, rows = 4 }) {
  const told = h("div", { class: "told", "aria-live": "polite" });
  const field = editor({ label: "Query", parts: queryParts, value, rows, oninput: () => later(), onsubmit });
  let asking = new AbortController();

  async function checkNow() {
    later.cancel();
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const text = field.value;
    if (!text.trim()) {
      field.invalid(false);
      hold(told, h("p", { class: "hint" }, "An XPath filter, or a transformation: for … where … return …"));
      return onchecked(null);
    }
    try {
      const found = await check({ query: text, namespaces: read(namespaces()) }, signal);
      if (found.error) return refuse(found.error, text);
      field.invalid(false);
      field.mark([]);
      hold(told, h("p", { class: "fine" }, "A query: ", h("code", {}, found.canonical)));
      onchecked(found);
    } catch (error) {
      if (!signal.aborted) refuse(error, text);
    }
  }

  function refuse(error, text) {
    field.invalid(true);
    if (error.position) field.mark(spot(text, indexOf(text, error.position.offset)));
    hold(told, error.position ? located(error, text) : problem(error));
    onchecked(null);
  }

  const later = debounced(PAUSE, checkNow);
  return { node: h("div", { class: "checked" }, field.node, told), field, check: checkNow, later, refuse };
}
