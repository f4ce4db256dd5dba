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
      onchecked(null);
      return;
    }
    try {
      const found = await check({ query: text, namespaces: read(namespaces()) }, signal);
      field.invalid(false);
      field.mark([]);
      hold(told, h("p", { class: "fine" }, "A query: ", h("code", {}, found.canonical)));
      onchecked(found);
    } catch (error) {
      if (signal.aborted) return;
      field.invalid(true);
      refuse(error, text);
      onchecked(null);
    }
  }

  function refuse(error, text) {
    if (!error.position) return hold(told, problem(error));
    field.mark(spot(text, indexOf(text, error.position.offset)));
    return hold(told, located(error, text));
  }

  const later = debounced(PAUSE, checkNow);
  return { node: h("div", { class: "checked" }, field.node, told), field, check: checkNow, later, refuse };
}
