// The playground: try a query on a message: the result, the output, why, and who gets the message.

import { go } from "../address.js";
import * as api from "../api.js";
import { queryField } from "../query_field.js";
import { debounced, h, hold } from "../dom.js";
import { drafts } from "../drafts.js";
import { spot } from "../editor.js";
import { explanationList } from "../explanation.js";
import { button, choice, labelled } from "../fields.js";
import { plural } from "../format.js";
import { headersField, parseHeaders } from "../headers.js";
import { icon } from "../icons.js";
import { matchingList } from "../matching_list.js";
import { messageField } from "../message_field.js";
import { parseNamespaces } from "../namespaces.js";
import { code } from "../highlight.js";
import { located, problem } from "../problem.js";
import { SAMPLES } from "../samples.js";
import { subscriptionForm } from "../subscription_form.js";
import { indexOf, spans } from "../utf8.js";
import { pretty, xmlParts } from "../xml.js";

const DEBOUNCE_MS = 150;

export function playground(main, { who }) {
  const verdict = h("div", { class: "verdict", role: "status" });
  const result = h("div", { class: "result" });
  const wrong = h("div", { class: "feedback" });
  const others = matchingList();
  const message = messageField({
    value: drafts.message,
    oninput: () => {
      drafts.message = message.field.value;
      later();
    },
    onsample: (sample) => {
      names.value = sample.namespaces;
      query.field.value = sample.queries[0];
      showQueries(sample);
      query.check();
    },
  });
  const headers = headersField({
    value: drafts.headers,
    oninput: () => {
      drafts.headers = headers.field.value;
      later();
    },
  });
  const names = h("textarea", { rows: 2, spellcheck: "false", autocomplete: "off", oninput: () => query.later() });
  names.value = drafts.namespaces;
  const query = queryField({
    value: drafts.query,
    rows: 5,
    namespaces: () => names.value,
    remedy: binding,
    onsubmit: () => subscribe(),
    onchecked: (found) => {
      Object.assign(drafts, { query: query.field.value, namespaces: names.value });
      checked = found;
      tryNow();
    },
  });
  const ready = choice([], {
    onchange: () => {
      query.field.value = ready.value;
      query.check();
    },
  });
  /** The checked query; null if it has an error. */
  let checked = null;
  let asking = new AbortController();

  async function tryNow() {
    later.cancel();
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const xml = message.field.value;
    const asked = checked ? { query: query.field.value, namespaces: parseNamespaces(names.value), explain: true } : {};
    try {
      const tried = await api.match({ xml, headers: parseHeaders(headers.field.value), ...asked }, signal);
      hold(wrong);
      message.field.invalid(false);
      show(tried.query, xml);
      others.show(tried, xml, parseHeaders(headers.field.value));
    } catch (error) {
      if (signal.aborted) return;
      refuse(error, xml);
    }
  }

  const later = debounced(DEBOUNCE_MS, tryNow);

  function show(tried, xml) {
    if (!tried) {
      message.field.mark([]);
      say("idle", "alert", query.field.value.trim() ? "Invalid query" : "No query", query.field.value.trim() ? "See the error above." : "");
      hold(result);
      return;
    }
    const hits = spans(xml, tried.nodes).map((one, place) => ({ ...one, kind: `hit-${place % 2}` }));
    const missed = tried.matches ? [] : tried.explanation.lines.filter((line) => line.fails_at).map((line) => line.fails_at);
    message.field.mark([...hits, ...spans(xml, missed).map((one) => ({ ...one, kind: "missed" }))]);
    if (tried.matches) say("yes", "check", "Matches", tried.nodes.length ? `${plural(tried.nodes.length, "node")} selected, marked in the message` : "because of what the message does not have");
    else say("no", "cross", "Does not match", tried.reason);
    hold(
      result,
      tried.instead && h("p", {}, button("Use the query that matches", { class: "plain", title: tried.instead, onclick: () => use(tried.instead) })),
      tried.failure && problem({ reason: tried.failure }),
      tried.output !== null && h("section", {}, h("h2", {}, "Output"), code(pretty(tried.output), xmlParts)),
      h("section", {}, h("h2", {}, "Why"), explanationList(tried.explanation)),
    );
  }

  function use(text) {
    query.field.value = text;
    query.check();
  }

  /** A button that binds the prefix of a refused query as the message does; null if it does not. */
  function binding(error, text) {
    if (error.code !== "unbound-prefix" || !error.position) return null;
    const prefix = /[\p{L}_][\p{L}\p{N}_.-]*/u.exec(text.slice(indexOf(text, error.position.offset)))?.[0];
    const declared = [...message.field.value.matchAll(/xmlns:([^\s=]+)\s*=\s*(["'])(.*?)\2/g)].find((one) => one[1] === prefix);
    if (!declared) return null;
    const line = `${prefix} = ${declared[3]}`;
    const bind = () => {
      names.value = [names.value.trim(), line].filter(Boolean).join("\n");
      query.check();
    };
    return h("p", {}, button(`Bind ${line}`, { class: "plain", title: "as the message does", onclick: bind }));
  }

  function refuse(error, xml) {
    hold(result);
    others.hide();
    if (!error.position) {
      say("no", "alert", error.status === 403 ? "Not allowed" : "Failed", error.reason);
      return;
    }
    message.field.invalid(true);
    message.field.mark(spot(xml, indexOf(xml, error.position.offset)));
    hold(wrong, located(error, xml));
    say("no", "alert", "Not well-formed", "If it is published, this message becomes a dead letter.");
  }

  function say(kind, drawing, headline, text) {
    verdict.className = `verdict ${kind}`;
    hold(verdict, icon(drawing), h("div", {}, h("strong", {}, headline), h("p", {}, text)));
  }

  function showQueries(sample) {
    hold(ready, sample.queries.map((one) => h("option", { value: one }, one.replace(/\s+/g, " "))));
  }

  function subscribe() {
    subscriptionForm({
      who,
      draft: { query: query.field.value, namespaces: parseNamespaces(names.value), subscriber: "" },
      ondone: (made) => go("subscriptions", { text: made.query.split("\n")[0] }),
    });
  }

  showQueries(SAMPLES.find((one) => one.message === drafts.message) ?? SAMPLES[0]);
  ready.value = drafts.query;
  main.append(
    h(
      "div",
      { class: "bench" },
      h("section", { class: "card", "aria-label": "Message" }, message.node, headers.node, wrong),
      h(
        "section",
        { class: "card", "aria-label": "Query" },
        labelled("Sample queries", ready),
        query.node,
        h("details", { open: names.value !== "" }, h("summary", {}, "Namespaces"), labelled("Prefixes", names, "prefix = URI, one per line; = URI: the default namespace; or the name of a shared prefix map.")),
        verdict,
        result,
        h(
          "div",
          { class: "actions" },
          who.role === "admin" && button("Publish the message", { class: "plain", onclick: () => go("publish") }, icon("publish")),
          button("Subscribe", { onclick: subscribe }, icon("plus")),
        ),
      ),
    ),
    others.node,
  );
  say("idle", "try", "…", "");
  query.check();
  return () => {
    asking.abort();
    later.cancel();
    query.later.cancel();
  };
}
