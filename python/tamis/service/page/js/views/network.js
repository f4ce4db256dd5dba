// Network: the links of the broker, what crosses them and what waits.

import * as api from "../api.js";
import { h, hold } from "../dom.js";
import { bytes, count, share } from "../format.js";
import { problem } from "../problem.js";

const COLUMNS = ["Link", "State", "Messages", "Of all", "Bytes", "Received", "In vain", "Rows", "Waiting", "Log"];

export function network(main, { feed }) {
  const about = h("p", { class: "hint" });
  const links = h("tbody");
  const notes = h("div", { class: "trouble" });
  const head = COLUMNS.map((name, place) => h("th", { scope: "col", class: place > 1 && "figure" }, name));
  const table = h("div", { class: "wide" }, h("table", {}, h("thead", {}, h("tr", {}, head)), links));
  const section = h("section", { class: "card" }, h("h2", {}, "Links"), about, table);
  section.setAttribute("aria-busy", "true");
  main.append(notes, section);

  async function load() {
    try {
      const found = await api.network();
      about.textContent = aboutOf(found);
      table.hidden = !found.links.length;
      hold(links, found.links.map(row));
      hold(notes, found.links.flatMap(remarks).map(problem));
    } catch (error) {
      hold(notes, problem(error));
    }
    section.setAttribute("aria-busy", "false");
  }

  return feed.on(load);
}

function aboutOf({ broker, brokers, links }) {
  if (broker === null) return "This service is no part of a network: docs/network.md tells how to link brokers.";
  const others = brokers.filter((one) => one !== broker);
  const known = `This is ${broker}. The other brokers: ${others.join(", ") || "none"}.`;
  return links.length ? known : `${known} The job has not reported its links yet.`;
}

function row(link) {
  const figures = [
    count(link.messages),
    link.offered ? share(link.messages, link.offered) : "–",
    bytes(link.bytes),
    count(link.received),
    link.received ? share(link.in_vain, link.received) : "–",
    count(link.routes),
    count(link.waiting),
    `${share(link.waiting_bytes, link.most_bytes)} full`,
  ];
  const state = link.pressed ? "retrying" : link.state === "up" ? "running" : "bad";
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, `to ${link.neighbour}`),
    h(
      "td",
      {},
      h("span", { class: `badge ${state}` }, link.pressed ? "full" : link.state),
      !link.routed && h("span", { class: "badge" }, "is sent everything"),
    ),
    figures.map((figure) => h("td", { class: "figure" }, figure)),
  );
}

/** What is wrong with a link, and what follows from it. */
function remarks(link) {
  const found = [];
  if (link.reason) found.push({ reason: `${link.neighbour}: ${link.reason}` });
  if (link.pressed) found.push({ reason: `sources wait: the log to ${link.neighbour}, or one behind it, is full` });
  return found;
}
