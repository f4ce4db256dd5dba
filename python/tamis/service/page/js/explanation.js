// Why a query matches a message or does not: its paths, one by one.

import { h } from "./dom.js";
import { plural } from "./format.js";
import { icon } from "./icons.js";

/** `explanation` as the API tells it. */
export function explained({ reason, matches, lines, operators }) {
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
    paths.length ? h("ul", { class: "paths" }, paths) : h("p", {}, "Nothing has to be there for it to match."),
    operators.length > 0 && h("details", {}, h("summary", {}, `How it is made: ${plural(operators.length, "operator")}`), plan(operators)),
  );
}

const failing = (line) => (line.failing === line.text ? "is not there" : `${line.failing} fails${line.fails_at ? ", though what leads there is found" : ""}`);

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

function plan(operators) {
  const rows = operators.map((one) =>
    h("tr", {}, h("td", {}, one.kind), h("td", {}, h("code", {}, one.text)), h("td", { class: "figure" }, one.results), h("td", {}, one.note)),
  );
  const head = ["Operator", "Over", "Gave", "How"].map((text) => h("th", { scope: "col" }, text));
  return h("div", { class: "wide" }, h("table", { class: "small" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)));
}
