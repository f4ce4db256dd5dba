// Why a query matches a message, or why not: its linear paths, one by one.

import { h } from "./dom.js";
import { plural } from "./format.js";
import { icon } from "./icons.js";

/** `explanation`: from the API. */
export function explanationList({ reason, matches, lines, operators }) {
  const paths = lines.map((line) =>
    h(
      "li",
      { class: line.holds ? "holds" : "fails" },
      icon(line.holds ? "check" : "cross"),
      h("code", {}, line.text),
      h("span", {}, line.holds ? `found, ${plural(line.nodes, "node")}` : failing(line)),
    ),
  );
  return h(
    "div",
    { class: "explanation" },
    !matches && h("p", {}, sentence(reason)),
    paths.length ? h("ul", { class: "paths" }, paths) : matches && h("p", {}, "No path is necessary for it to match."),
    operators.length > 0 && h("details", {}, h("summary", {}, `How it runs: ${plural(operators.length, "operator")}`), plan(operators)),
  );
}

const failing = (line) => (line.failing === line.text ? "is not there" : `${line.failing} fails${line.fails_at ? ", though what leads there is found" : ""}`);

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

function plan(operators) {
  const rows = operators.map((one) =>
    h("tr", {}, h("td", {}, one.kind), h("td", {}, h("code", {}, one.text)), h("td", { class: "figure" }, one.results), h("td", {}, one.note)),
  );
  const head = ["Operator", "Input", "Results", "Note"].map((text) => h("th", { scope: "col" }, text));
  return h("div", { class: "wide" }, h("table", { class: "small" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)));
}
