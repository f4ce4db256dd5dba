// An input for a query, checked while typing: an error is marked in the text and shown below it.

import { check } from "./api.js";
import { completion } from "./completion.js";
import { debounced, h, hold } from "./dom.js";
import { drafts } from "./drafts.js";
import { editor, spot } from "./editor.js";
import { parseNamespaces } from "./namespaces.js";
import { located, problem } from "./problem.js";
import { queryParts } from "./query.js";
import { indexOf } from "./utf8.js";

const DEBOUNCE_MS = 150;

/**
 * An input for a query. `namespaces()`: the text of its prefixes. `onchecked(found)` gets the result of each
 * check: the query, or null if there is an error. `remedy(error, text)`: a node below an error that corrects it.
 */
export function queryField({ value, namespaces, onchecked = () => {}, remedy = () => null, onsubmit, rows = 4 }) {
  const message = h("div", { class: "feedback", "aria-live": "polite" });
  const field = editor({ label: "Query", parts: queryParts, value, rows, oninput: () => later(), onsubmit });
  const completions = completion(field.area, () => drafts.message);
  let asking = new AbortController();

  async function checkNow() {
    later.cancel();
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const text = field.value;
    if (!text.trim()) {
      field.invalid(false);
      hold(message, h("p", { class: "hint" }, "An XPath filter, or a transformation: for … where … return …"));
      return onchecked(null);
    }
    try {
      const found = await check({ query: text, namespaces: parseNamespaces(namespaces()) }, signal);
      if (found.error) return refuse(found.error, text);
      field.invalid(false);
      field.mark([]);
      hold(
        message,
        h("p", { class: "fine" }, "Valid: ", h("code", {}, found.canonical)),
        ...found.warnings.map((warning) => h("p", { class: "warning" }, `Warning: ${warning.reason}.`)),
      );
      onchecked(found);
    } catch (error) {
      if (!signal.aborted) refuse(error, text);
    }
  }

  function refuse(error, text) {
    field.invalid(true);
    if (error.position) field.mark(spot(text, indexOf(text, error.position.offset)));
    hold(message, error.position ? located(error, text) : problem(error), remedy(error, text));
    onchecked(null);
  }

  const later = debounced(DEBOUNCE_MS, checkNow);
  return { node: h("div", { class: "checked" }, field.node, completions, message), field, check: checkNow, later, refuse };
}
