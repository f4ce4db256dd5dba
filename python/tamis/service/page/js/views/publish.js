// Publish one message.

import * as api from "../api.js";
import { h, hold } from "../dom.js";
import { drafts } from "../drafts.js";
import { choice, labelled } from "../fields.js";
import { time } from "../format.js";
import { headersField, parseHeaders } from "../headers.js";
import { icon } from "../icons.js";
import { messageField } from "../message_field.js";
import { located, problem } from "../problem.js";

const REMEMBERED = 10;

export function publish(main, { who }) {
  const message = messageField({ value: drafts.message, oninput: () => (drafts.message = message.field.value), onsubmit: send });
  const id = h("input", { spellcheck: "false", autocomplete: "off" });
  const source = choice([], { disabled: true });
  const headers = headersField({ value: drafts.headers, oninput: () => (drafts.headers = headers.field.value) });
  const notice = h("div", { class: "form-feedback" });
  const done = h("ul", { class: "published", "aria-label": "Published" });
  const submit = h("button", { type: "submit" }, icon("publish"), h("span", {}, "Publish"));

  async function send() {
    submit.disabled = true;
    hold(notice);
    try {
      const accepted = await api.publish(message.field.value, source.value, id.value.trim(), parseHeaders(headers.field.value));
      done.prepend(...accepted.messages.map((one) => line(one, accepted.source)));
      while (done.children.length > REMEMBERED) done.lastElementChild.remove();
      id.value = "";
    } catch (error) {
      hold(notice, error.position ? located(error, message.field.value) : problem(error));
    }
    submit.disabled = false;
  }

  function line(accepted, name) {
    const text = accepted.new ? "accepted and stored" : "already known: nothing changed";
    return h("li", {}, icon("check"), h("code", {}, accepted.id), h("span", {}, `${text}, source ${name}, ${time(new Date())}`));
  }

  async function load() {
    try {
      // Only to inboxes: publishers send to Kafka themselves.
      const own = (await api.sources()).filter((one) => one.kind === "directory" && one.tenant === who.tenant);
      hold(source, own.map(({ name }) => h("option", { value: name }, name)));
      source.disabled = own.length < 2;
      if (!own.length) hold(notice, problem({ reason: "this tenant has no inbox to publish to: add a [[source]] with a path to tamis.toml" }));
    } catch (error) {
      hold(notice, problem(error));
    }
  }

  main.append(
    h("p", { class: "lead" }, "An accepted message is stored durably. A message that is not well-formed becomes a dead letter."),
    h(
      "form",
      {
        class: "publish",
        novalidate: true,
        onsubmit: (event) => {
          event.preventDefault();
          send();
        },
      },
      h("div", { class: "card" }, message.node, headers.node),
      h("div", { class: "card side" }, labelled("Source", source), labelled("Message id", id, "The same id is the same message. Generated if empty."), submit, notice, done),
    ),
  );
  load();
  return () => {};
}
