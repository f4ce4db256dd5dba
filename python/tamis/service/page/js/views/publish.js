// Publishing a message by hand.

import * as api from "../api.js";
import { h, hold } from "../dom.js";
import { drafts } from "../drafts.js";
import { choice, labelled } from "../fields.js";
import { time } from "../format.js";
import { icon } from "../icons.js";
import { messageField } from "../message_field.js";
import { located, problem } from "../problem.js";

const REMEMBERED = 10;

export function publish(main, { who }) {
  const message = messageField({ value: drafts.message, oninput: () => (drafts.message = message.field.value), onsubmit: send });
  const id = h("input", { spellcheck: "false", autocomplete: "off" });
  const source = choice([], { disabled: true });
  const told = h("div", { class: "told-form" });
  const done = h("ul", { class: "published", "aria-label": "Published" });
  const submit = h("button", { type: "submit" }, icon("publish"), h("span", {}, "Publish"));

  async function send() {
    submit.disabled = true;
    hold(told);
    try {
      const accepted = await api.publish(message.field.value, source.value, id.value.trim());
      done.prepend(...accepted.messages.map((one) => line(one, accepted.source)));
      while (done.children.length > REMEMBERED) done.lastElementChild.remove();
      id.value = "";
    } catch (error) {
      hold(told, error.position ? located(error, message.field.value) : problem(error));
    }
    submit.disabled = false;
  }

  function line(accepted, name) {
    const text = accepted.new ? "accepted: it is stored" : "known already: nothing changed";
    return h("li", {}, icon("check"), h("code", {}, accepted.id), h("span", {}, `${text}, source ${name}, ${time(new Date())}`));
  }

  async function load() {
    try {
      // An inbox takes messages; where Kafka is the source, publishers speak to it.
      const own = (await api.sources()).filter((one) => one.kind === "directory" && one.tenant === who.tenant);
      hold(source, own.map(({ name }) => h("option", { value: name }, name)));
      source.disabled = own.length < 2;
      if (!own.length) hold(told, problem({ reason: "this tenant has no source to publish to: a [[source]] with a path in tamis.toml" }));
    } catch (error) {
      hold(told, problem(error));
    }
  }

  main.append(
    h("p", { class: "lead" }, "Accepted is stored: the message is on the disk before the answer comes. One that is not well-formed becomes a dead letter."),
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
      h("div", { class: "card" }, message.node),
      h("div", { class: "card side" }, labelled("Source", source), labelled("Message id", id, "The same id again is the same message. Made for you if you leave it empty."), submit, told, done),
    ),
  );
  load();
  return () => {};
}
