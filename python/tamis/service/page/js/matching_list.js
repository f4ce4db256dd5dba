// Existing subscriptions beside a message: which match, and for each of them why, or why not.

import * as api from "./api.js";
import { h, hold } from "./dom.js";
import { explained } from "./explanation.js";
import { cut, plural } from "./format.js";
import { icon } from "./icons.js";
import { problem } from "./problem.js";

const SHOWN = 20;

export function matchingList() {
  const title = h("h2", {}, "Who gets this message");
  const told = h("p", { class: "hint" });
  const list = h("div", { class: "rows" });
  const node = h("section", { class: "card others" }, title, told, list);
  /** Some that are there, whether they match or not; asked for once. */
  let known = null;

  async function show({ generation, subscriptions, more }, xml) {
    try {
      known ??= (await api.subscriptions({ limit: SHOWN })).subscriptions;
    } catch (error) {
      hold(list, problem(error));
      return;
    }
    const matching = new Set(subscriptions.map((one) => one.id));
    const rest = known.filter((one) => !matching.has(one.id));
    told.textContent =
      generation === null
        ? "The job has made no generation of subscriptions yet: it does with its first batch."
        : `${plural(subscriptions.length, "subscription")}${more ? " and more" : ""} of generation ${generation} would get it.`;
    // What was open stays open while somebody types.
    const open = new Set([...list.querySelectorAll("details[open]")].map((one) => one.dataset.id));
    const rows = [
      ...subscriptions.slice(0, SHOWN).map((one) => row(one, true, xml, open)),
      ...rest.map((one) => row(one, false, xml, open)),
    ];
    hold(list, rows.length ? rows : h("p", { class: "hint" }, "There are no subscriptions yet."));
  }

  function hide() {
    told.textContent = "The message cannot be read, so nobody gets it.";
    hold(list);
  }

  return { node, show, hide };
}

function row(one, matches, xml, open) {
  const why = h("div", { class: "why" });
  const node = h(
    "details",
    { class: matches ? "holds" : "fails", "data-id": one.id },
    h(
      "summary",
      {},
      icon(matches ? "check" : "cross"),
      h("strong", {}, one.subscriber),
      h("code", {}, one.id),
      h("span", { class: "hint" }, one.query ? cut(one.query.replace(/\s+/g, " "), 80) : `→ ${one.delivery_target}`),
      h("span", { class: "ask" }, matches ? "Why?" : "Why not?"),
    ),
    why,
  );
  node.addEventListener("toggle", () => {
    if (node.open && !why.childElementCount) explain(one.id, matches, xml, why);
  });
  if (open.has(one.id)) node.open = true;
  return node;
}

/** The subscription's own query, tried on the message. */
async function explain(id, matches, xml, why) {
  try {
    const kept = await api.subscription(id);
    const tried = await api.match({ xml, query: kept.query, namespaces: kept.namespaces, explain: true, limit: 1 });
    hold(
      why,
      h("pre", { class: "query" }, kept.query),
      kept.state === "paused" && h("p", {}, "It is paused."),
      !matches && tried.query.matches && kept.state !== "paused" && h("p", {}, "Its query matches: it takes effect with the next generation."),
      explained(tried.query.explanation),
    );
  } catch (error) {
    hold(why, problem(error));
  }
}
