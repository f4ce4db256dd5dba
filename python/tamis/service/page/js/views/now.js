// Now: rates, lag, errors and sources.

import { chart, sparkline } from "../chart.js";
import { h, hold } from "../dom.js";
import { count, plural, rate, seconds, share, time } from "../format.js";
import { problem } from "../problem.js";
import { lagOf, lastBatch, totalsOf, wholeLag } from "../status.js";

const SECONDS = 120;

export function now(main, { feed }) {
  const tiles = {
    messages: tile("Messages", "per second", "one"),
    matched: tile("Matched", "messages per second", "three"),
    deliveries: tile("Deliveries", "per second", "two"),
    lag: tile("Lag", "messages to read", "four"),
    batch: tile("Batch time", "of the last batch", "five"),
    generation: tile("Generation", "of subscriptions"),
    mailbox: tile("Mailboxes", "deliveries wait"),
    errors: tile("Errors", "since the job started"),
  };
  const flow = chart({
    label: "Messages and deliveries per second",
    seconds: SECONDS,
    format: rate,
    series: [
      { name: "deliveries", label: "Deliveries", kind: "two" },
      { name: "messages", label: "Messages", kind: "one" },
      { name: "matched", label: "Matched", kind: "three" },
    ],
  });
  const waiting = chart({
    label: "Messages to read",
    seconds: SECONDS,
    format: count,
    series: [{ name: "lag", label: "Lag", kind: "four" }],
  });
  const batches = chart({
    label: "Batch time",
    seconds: SECONDS,
    format: seconds,
    series: [{ name: "batch", label: "Last batch", kind: "five" }],
  });
  const trouble = h("div", { class: "trouble" });
  const sources = h("tbody");
  const names = ["Source", "State", "Messages/s", "Deliveries/s", "Read", "Matched", "Dead", "Waiting"];
  const head = names.map((name, place) => h("th", { scope: "col", class: place > 1 && "figure" }, name));
  main.append(
    trouble,
    h("div", { class: "tiles" }, Object.values(tiles).map((one) => one.node)),
    flow.node,
    h("div", { class: "pair" }, waiting.node, batches.node),
    h(
      "section",
      { class: "card" },
      h("h2", {}, "Sources"),
      h("div", { class: "wide" }, h("table", {}, h("thead", {}, h("tr", {}, head)), sources)),
    ),
  );

  return feed.on(({ latest, error, samples }) => {
    hold(trouble, error ? problem(error) : failuresOf(latest).map(problem));
    if (!latest) return;
    const last = samples.at(-1);
    const totals = totalsOf(latest);
    const line = (name) => samples.slice(-60).map((one) => one[name]);
    tiles.messages.show(rate(last.messages), `${count(totals.read)} in total`, line("messages"));
    tiles.matched.show(rate(last.matched), `${share(totals.matched, totals.read)} of messages`, line("matched"));
    tiles.deliveries.show(rate(last.deliveries), `${count(totals.deliveries)} in total`, line("deliveries"));
    tiles.lag.show(count(wholeLag(latest)), "messages to read", line("lag"));
    const batch = lastBatch(latest);
    tiles.batch.show(seconds(batch?.seconds), batch ? `${plural(batch.read, "message")}, ${time(batch.started)}` : "no batch yet", line("batch"));
    const { job } = latest;
    const known = job?.subscriptions ?? null;
    tiles.generation.show(job?.generation ?? "–", known === null ? "of subscriptions" : `${plural(known, "subscription")}, all tenants`);
    tiles.mailbox.show(count(latest.waiting_deliveries), "deliveries wait");
    const wrong = totals.dead + totals.failed;
    tiles.errors.show(count(wrong), `${count(totals.dead)} dead, ${count(totals.failed)} failed`);
    tiles.errors.node.classList.toggle("bad", wrong > 0);
    for (const one of [flow, waiting, batches]) one.show(samples);
    hold(sources, job?.sources.length ? job.sources.map((source) => row(source, latest)) : nothing());
  });
}

function tile(label, unit, kind) {
  const value = h("strong", {}, "–");
  const below = h("small", {}, unit);
  const line = kind && sparkline(kind);
  return {
    node: h("div", { class: "tile" }, h("span", {}, label), value, below, line?.node),
    show(figure, text, values) {
      value.textContent = figure;
      below.textContent = text;
      line?.show(values);
    },
  };
}

function row(source, latest) {
  const lag = lagOf(source, latest);
  const figures = [
    rate(source.messages_rate),
    rate(source.matches_rate),
    count(source.totals.read),
    count(source.totals.matched),
    count(source.totals.dead),
    lag === null ? "–" : count(lag),
  ];
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, source.name),
    h("td", {}, h("span", { class: `badge ${source.state}` }, source.state)),
    figures.map((figure) => h("td", { class: "figure" }, figure)),
  );
}

const nothing = () => h("tr", {}, h("td", { colspan: 8, class: "hint" }, "The job has not reported yet."));

/** Current failures. */
function failuresOf({ job }) {
  const failing = (job?.sources ?? []).filter((source) => source.state === "retrying" && source.failure);
  const failures = failing.map(({ name, failure }) => ({ reason: `${name}: ${failure.reason}` }));
  if (job?.failure) failures.unshift({ reason: job.failure.reason });
  if (job?.state === "died") failures.unshift({ reason: "the job died; the service restarts it" });
  return failures;
}
