// Subscriptions: search, create, change, pause, remove.

import { go } from "../address.js";
import * as api from "../api.js";
import { confirmed } from "../dialog.js";
import { debounced, h, hold } from "../dom.js";
import { drafts } from "../drafts.js";
import { button, choice, labelled } from "../fields.js";
import { cut, time } from "../format.js";
import { icon } from "../icons.js";
import { formatNamespaces } from "../namespaces.js";
import { highlighted } from "../highlight.js";
import { problem } from "../problem.js";
import { queryParts } from "../query.js";
import { subscriptionForm } from "../subscription_form.js";
import { failed, toast } from "../toast.js";

const PAGE = 20;

export function subscriptions(main, { who, params }) {
  const text = h("input", { type: "search", placeholder: "Part of a query", "data-key": "/", oninput: () => again() });
  const subscriber = h("input", { type: "search", placeholder: "Anybody", oninput: () => again() });
  const state = choice([["", "All"], ["active", "Active"], ["paused", "Paused"]], { onchange: () => again() });
  text.value = params.get("text") ?? "";
  const list = h("div", { class: "list", role: "list", "aria-busy": "true" });
  const earlier = button("Previous", { class: "plain", disabled: true, onclick: () => turn(-1) });
  const later = button("Next", { class: "plain", disabled: true, onclick: () => turn(1) });
  const place = h("span", { class: "hint", role: "status" });
  // The cursor of each page: the API gives only the next one.
  let starts = [null];
  let page = 0;
  let asking = new AbortController();

  async function load() {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const wanted = { text: text.value, subscriber: subscriber.value.trim(), state: state.value, after: starts[page], limit: PAGE };
    try {
      const found = await api.subscriptions(wanted, signal);
      if (!found.subscriptions.length && page > 0) return turn(-1);
      starts[page + 1] = found.next;
      hold(list, found.subscriptions.length ? found.subscriptions.map(card) : empty());
      earlier.disabled = page === 0;
      later.disabled = found.next === null;
      place.textContent = found.next === null && page === 0 ? "" : `Page ${page + 1}`;
    } catch (error) {
      if (!signal.aborted) hold(list, problem(error));
    }
    list.setAttribute("aria-busy", "false");
    return undefined;
  }

  function turn(by) {
    page = Math.max(0, page + by);
    return load();
  }

  const again = debounced(150, () => {
    starts = [null];
    page = 0;
    load();
  });

  const create = (draft) => subscriptionForm({ who, draft, ondone: load });

  function empty() {
    const searching = text.value || subscriber.value || state.value;
    return h(
      "div",
      { class: "empty" },
      icon("subscriptions"),
      h("h2", {}, searching ? "Nothing found" : "No subscriptions yet"),
      h("p", {}, searching ? "No subscription matches the filter." : "Create one, or try a query in the playground first."),
      !searching && button("New subscription", { onclick: () => create() }, icon("plus")),
    );
  }

  async function move(kept, to) {
    try {
      await api.change(kept.id, { state: to });
      toast(`${kept.id} is ${to}`);
      await load();
    } catch (error) {
      failed(error);
    }
  }

  async function remove(kept) {
    if (!(await confirmed("Remove the subscription?", `${kept.id} of ${kept.subscriber}: ${cut(kept.query, 200)}`, "Remove"))) return;
    try {
      await api.remove(kept.id);
      toast(`${kept.id} is removed`);
      await load();
    } catch (error) {
      failed(error);
    }
  }

  function card(kept) {
    const paused = kept.state === "paused";
    const act = (label, drawing, onclick) => button(label, { class: "plain small", "aria-label": `${label} ${kept.id}`, onclick }, icon(drawing));
    return h(
      "article",
      { class: "card subscription", role: "listitem", "data-id": kept.id },
      h("pre", { class: "query" }, highlighted(cut(kept.query.trim(), 600), queryParts)),
      h(
        "p",
        { class: "facts" },
        h("span", { class: `badge ${kept.state}` }, kept.state),
        h("span", {}, icon("deliveries"), kept.subscriber),
        h("span", {}, `→ ${kept.delivery_target}`),
        h("code", { title: "Id" }, kept.id),
        h("span", {}, `revision ${kept.revision}, ${time(kept.changed)}`),
      ),
      h(
        "div",
        { class: "acts" },
        act("Try", "try", () => {
          Object.assign(drafts, { query: kept.query, namespaces: formatNamespaces(kept.namespaces) });
          go("playground");
        }),
        act("Edit", "edit", () => subscriptionForm({ who, kept, ondone: load })),
        paused ? act("Resume", "resume", () => move(kept, "active")) : act("Pause", "pause", () => move(kept, "paused")),
        act("Remove", "remove", () => remove(kept)),
      ),
    );
  }

  main.append(
    h(
      "div",
      { class: "toolbar" },
      labelled("Search", text),
      !who.subscriber && labelled("Subscriber", subscriber),
      labelled("State", state),
      button("New subscription", { "data-key": "n", onclick: () => create() }, icon("plus")),
    ),
    list,
    h("div", { class: "paging" }, earlier, place, later),
  );
  load();
  return () => {
    again.cancel();
    asking.abort();
  };
}
