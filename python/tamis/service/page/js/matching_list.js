// Existing subscriptions and a message: which match, and for each one why, or why not.

import * as api from "./api.js";
import { h, hold } from "./dom.js";
import { explanationList } from "./explanation.js";
import { cut, plural } from "./format.js";
import { icon } from "./icons.js";
import { problem } from "./problem.js";

const SHOWN = 20;

export function matchingList() {
  const title = h("h2", {}, "Who gets this message");
  const summary = h("p", { class: "hint" });
  const list = h("div", { class: "rows" });
  const node = h("section", { class: "card others" }, title, summary, list);
  /** Some subscriptions, whether they match or not; fetched once. */
  let known = null;

  async function show({ generation, subscriptions, more }, xml, headers) {
    try {
      known ??= (await api.subscriptions({ limit: SHOWN })).subscriptions;
    } catch (error) {
      hold(list, problem(error));
      return;
    }
    const matching = new Set(subscriptions.map((one) => one.id));
    const rest = known.filter((one) => !matching.has(one.id));
    summary.textContent =
      generation === null
        ? "The job has not published its first generation yet."
        : `${plural(subscriptions.length, "subscription")}${more ? " and more" : ""} of generation ${generation} would get it.`;
    // Keep open what was open.
    const open = new Set([...list.querySelectorAll("details[open]")].map((one) => one.dataset.id));
    const rows = [
      ...subscriptions.slice(0, SHOWN).map((one) => row(one, true, { xml, headers }, open)),
      ...rest.map((one) => row(one, false, { xml, headers }, open)),
    ];
    hold(list, rows.length ? rows : h("p", { class: "hint" }, "There are no subscriptions yet."));
  }

  function hide() {
    summary.textContent = "The message cannot be read, so it is not delivered.";
    hold(list);
  }

  return { node, show, hide };
}

function row(one, matches, message, open) {
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
    if (node.open && !why.childElementCount) explain(one.id, matches, message, why);
  });
  if (open.has(one.id)) node.open = true;
  return node;
}

/** Try the query of a subscription on the message. */
async function explain(id, matches, message, why) {
  try {
    const kept = await api.subscription(id);
    const tried = await api.match({ ...message, query: kept.query, namespaces: kept.namespaces, explain: true, limit: 1 });
    hold(
      why,
      h("pre", { class: "query" }, kept.query),
      kept.state === "paused" && h("p", {}, "The subscription is paused."),
      !matches && tried.query.matches && kept.state !== "paused" && h("p", {}, "Its query matches; it takes effect with the next generation."),
      explanationList(tried.query.explanation),
    );
  } catch (error) {
    hold(why, problem(error));
  }
}
