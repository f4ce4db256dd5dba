// Headers of a message as text: a line `name = value` each.

import { h } from "./dom.js";
import { labelled } from "./fields.js";

/** Text → the field `headers` of the API; undefined without headers. A line without `=` is a name without a value. */
export function parseHeaders(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const pairs = lines.map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
  return pairs.length ? Object.fromEntries(pairs) : undefined;
}

/** An input for headers, folded away while there are none. */
export function headersField({ value, oninput }) {
  const field = h("textarea", { rows: 2, spellcheck: "false", autocapitalize: "off", autocomplete: "off", oninput });
  field.value = value;
  const hint = "name = value, one per line. Queries ask for them: $envelope/header[@name = 'priority'] = 'high'";
  return { field, node: h("details", { open: value !== "" }, h("summary", {}, "Headers"), labelled("Headers of the message", field, hint)) };
}
