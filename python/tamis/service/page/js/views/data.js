// Local data: sets with their sizes, versions and users; upload, preview, revert, remove.

import * as api from "../api.js";
import { confirmed } from "../dialog.js";
import { h, hold } from "../dom.js";
import { button } from "../fields.js";
import { bytes, plural, time } from "../format.js";
import { code } from "../highlight.js";
import { icon } from "../icons.js";
import { problem } from "../problem.js";
import { failed, toast } from "../toast.js";
import { uploadForm } from "../upload_form.js";
import { xmlParts } from "../xml.js";

export function data(main, { who }) {
  const isAdmin = who.role === "admin";
  const list = h("div", { class: "list", role: "list", "aria-busy": "true" });
  const add = () => uploadForm({ ondone: load });

  async function load() {
    try {
      const { data: sets } = await api.dataSets();
      const open = new Set([...list.querySelectorAll("details[open]")].map((one) => one.dataset.id));
      hold(list, sets.length ? sets.map((one) => card(one, open.has(one.name))) : empty());
    } catch (error) {
      hold(list, problem(error));
    }
    list.setAttribute("aria-busy", "false");
  }

  const empty = () =>
    h(
      "div",
      { class: "empty" },
      icon("data"),
      h("h2", {}, "No local data"),
      h("p", {}, "Records that queries join messages with: collection('name')."),
      isAdmin && button("Upload data", { onclick: add }, icon("publish")),
    );

  function card(one, isOpen) {
    const body = h("div", { class: "payload" });
    const { current } = one;
    const size = current ? `${plural(current.records, "record")}, ${bytes(current.bytes)}` : "no records yet";
    const node = h(
      "details",
      { class: "card letter data-set", "data-id": one.name, role: "listitem" },
      h(
        "summary",
        {},
        h("code", {}, one.name),
        one.shared && h("span", { class: "badge" }, "shared"),
        h("span", { class: "preview" }, size),
        h("span", {}, plural(one.users, "subscription")),
        current && h("time", { datetime: current.created }, `version ${current.number}, ${time(current.created)}`),
      ),
      body,
    );
    node.addEventListener("toggle", () => {
      if (node.open && !body.childElementCount) fill(one, body);
    });
    node.open = isOpen;
    return node;
  }

  async function fill(one, body) {
    try {
      const [details, { records }] = await Promise.all([api.dataSet(one.name), api.records(one.name)]);
      const facts = {
        Key: one.key ?? "none",
        "Indexed paths": one.indexed ? one.indexed.join(", ") : "all",
        Source: one.current?.source || "–",
        ...(details.subscriptions.length && { Subscriptions: details.subscriptions.join(", ") }),
      };
      const changes = isAdmin && !one.shared;
      hold(
        body,
        h("dl", { class: "facts" }, Object.entries(facts).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
        h("h3", {}, "First records"),
        code(records.join("\n"), xmlParts),
        h("h3", {}, "Versions"),
        h("ul", { class: "versions" }, details.versions.map((version) => line(one, version, changes))),
        changes &&
          h(
            "div",
            { class: "actions" },
            button("Remove", { class: "plain", "aria-label": `Remove ${one.name}`, onclick: () => remove(one) }, icon("remove")),
            button("Upload", { "aria-label": `Upload ${one.name}`, onclick: () => uploadForm({ kept: one, ondone: load }) }, icon("publish")),
          ),
      );
    } catch (error) {
      hold(body, problem(error));
    }
  }

  function line(one, version, changes) {
    const isCurrent = version.number === one.current?.number;
    const label = `Go back to version ${version.number} of ${one.name}`;
    return h(
      "li",
      {},
      `${version.number}: ${plural(version.records, "record")}, ${bytes(version.bytes)}, ${time(version.created)}`,
      isCurrent && h("span", { class: "badge" }, "current"),
      changes && !isCurrent && button("Use", { class: "plain small", "aria-label": label, onclick: () => revert(one, version) }, icon("replay")),
    );
  }

  async function revert(one, version) {
    try {
      await api.revertData(one.name, version.number);
      toast(`${one.name} is at version ${version.number}`);
      await load();
    } catch (error) {
      failed(error);
    }
  }

  async function remove(one) {
    if (!(await confirmed("Remove the data?", `${one.name} with all its versions.`, "Remove"))) return;
    try {
      await api.removeData(one.name);
      toast(`${one.name} is removed`);
      await load();
    } catch (error) {
      failed(error);
    }
  }

  if (isAdmin) main.append(h("div", { class: "toolbar" }, button("Upload data", { onclick: add }, icon("plus"))));
  main.append(list);
  load();
  return () => {};
}
