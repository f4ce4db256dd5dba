// The deliveries of a mailbox, live, and acknowledging them.

import { replace } from "../address.js";
import * as api from "../api.js";
import { h, hold } from "../dom.js";
import { follow } from "../events.js";
import { button, labelled } from "../fields.js";
import { cut, plural, time } from "../format.js";
import { icon } from "../icons.js";
import { code } from "../highlight.js";
import { problem } from "../problem.js";
import { failed, toast } from "../toast.js";
import { bytesOf, decode } from "../utf8.js";
import { pretty, xmlParts } from "../xml.js";

/** How many of the newest deliveries are shown. */
const SHOWN = 200;

const LIVE = "Live: new deliveries appear here.";

export function deliveries(main, { who, params }) {
  const subscriber = h("input", { type: "search", placeholder: "Whose mailbox?", spellcheck: "false", autocomplete: "off", list: "subscribers", "data-key": "/" });
  const known = h("datalist", { id: "subscribers" });
  const state = h("p", { class: "live", role: "status" });
  const list = h("div", { class: "list", role: "feed", "aria-label": "Deliveries" });
  const all = button("Acknowledge all", { class: "plain", disabled: true, onclick: () => acknowledgeAll() }, icon("check"));
  let following = new AbortController();
  let whose = who.subscriber ?? params.get("subscriber") ?? "";
  let newest = null;
  /** Received and not yet rendered: rendering waits while a delivery is open, so that it does not move. */
  let received = [];
  let scheduled = false;

  function open() {
    following.abort();
    following = new AbortController();
    newest = null;
    all.disabled = true;
    received = [];
    hold(list, empty());
    if (!whose) {
      say("busy", "Choose a subscriber.");
      return;
    }
    say("busy", "Opening …");
    follow(who.subscriber ? null : whose, following.signal, {
      open: () => say("good", LIVE),
      broken: () => say("bad", "The connection broke; reconnecting."),
      refused: (error) => {
        say("bad", "");
        hold(list, problem(error));
      },
      delivery: (one) => {
        received.push(one);
        if (!scheduled) requestAnimationFrame(renderUnlessOpen);
        scheduled = true;
      },
    });
  }

  function renderUnlessOpen() {
    scheduled = false;
    if (!received.length) return;
    if (!list.querySelector("details[open]")) render();
    else say("good", "Live. New deliveries wait while one is open.", button(`Show ${plural(received.length, "new one")}`, { class: "plain small", onclick: render }));
  }

  function render() {
    say("good", LIVE);
    newest = received.at(-1).cursor;
    const cards = received.slice(-SHOWN).reverse().map(card);
    received = [];
    list.querySelector(".empty")?.remove();
    list.prepend(...cards);
    while (list.children.length > SHOWN) list.lastElementChild.remove();
    all.disabled = false;
  }

  function say(kind, text, more) {
    hold(state, h("i", { class: `dot ${kind}` }), text, more);
  }

  function card(one) {
    const text = textOf(one);
    const body = h("div", { class: "payload" });
    const node = h(
      "details",
      { class: "card delivery", "data-id": one.id },
      h(
        "summary",
        {},
        h("time", { datetime: one.matched }, time(one.matched)),
        h("code", {}, one.message),
        h("span", { class: "badge" }, one.subscription),
        h("span", { class: "preview" }, text === null ? "bytes" : cut(text.replace(/\s+/g, " "), 200)),
      ),
      body,
    );
    node.addEventListener("toggle", () => {
      if (node.open && !body.childElementCount) hold(body, details(one, text, node));
      renderUnlessOpen();
    });
    return node;
  }

  function details(one, text, node) {
    const facts = {
      Subscription: `${one.subscription}, revision ${one.revision}`,
      Source: one.source,
      Received: time(one.received),
      Generation: one.generation,
      Delivery: one.id,
    };
    return [
      h("dl", { class: "facts" }, Object.entries(facts).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
      text === null ? h("p", { class: "hint" }, "The payload is not UTF-8. Get its bytes from the API.") : code(pretty(text), xmlParts),
      h("div", { class: "actions" }, button("Acknowledge", { onclick: () => acknowledge(one, node) }, icon("check"))),
    ];
  }

  const own = () => (who.subscriber ? {} : { subscriber: whose });

  async function acknowledge(one, node) {
    try {
      await api.acknowledge({ ids: [one.id], ...own() });
      const next = node.nextElementSibling ?? node.previousElementSibling;
      node.remove();
      (next?.querySelector("summary") ?? main).focus();
      renderUnlessOpen();
      if (!list.childElementCount) hold(list, empty());
    } catch (error) {
      failed(error);
    }
  }

  async function acknowledgeAll() {
    try {
      const { acknowledged } = await api.acknowledge({ until: newest, ...own() });
      toast(`${plural(acknowledged, "delivery", "deliveries")} acknowledged`);
      hold(list, empty());
      all.disabled = true;
    } catch (error) {
      failed(error);
    }
  }

  const empty = () =>
    h("div", { class: "empty" }, icon("deliveries"), h("h2", {}, "No deliveries"), h("p", {}, "New deliveries appear here."));

  async function suggest() {
    try {
      const { subscriptions } = await api.subscriptions({ limit: 1000 });
      hold(known, [...new Set(subscriptions.map((one) => one.subscriber))].sort().map((name) => h("option", { value: name })));
    } catch {
      // Only suggestions: a name can be typed.
    }
  }

  const choose = () => {
    whose = subscriber.value.trim();
    replace("deliveries", whose ? { subscriber: whose } : {});
    open();
  };

  main.append(
    h(
      "form",
      {
        class: "toolbar",
        novalidate: true,
        onsubmit: (event) => {
          event.preventDefault();
          choose();
        },
      },
      !who.subscriber && labelled("Subscriber", subscriber),
      !who.subscriber && known,
      !who.subscriber && h("button", { type: "submit", class: "plain" }, "Open"),
      state,
      all,
    ),
    list,
  );
  if (!who.subscriber) {
    subscriber.value = whose;
    suggest();
  }
  open();
  return () => following.abort();
}

function textOf(one) {
  return one.payload ?? (one.base64 === undefined ? null : decode(bytesOf(one.base64)));
}
