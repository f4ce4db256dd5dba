// A subscription, new or changed, in a dialog; its query is checked as it is typed.

import { change, subscribe } from "./api.js";
import { queryField } from "./query_field.js";
import { dialog } from "./dialog.js";
import { h, hold } from "./dom.js";
import { button, labelled } from "./fields.js";
import { read, written } from "./namespaces.js";
import { problem } from "./problem.js";
import { toast } from "./toast.js";

/** `kept`: the one that is to change. `draft`: what a new one begins with. */
export function subscriptionForm({ who, kept, draft = {}, ondone }) {
  const given = kept ?? draft;
  const text = { spellcheck: "false", autocapitalize: "off", autocomplete: "off" };
  const names = h("textarea", { ...text, rows: 2, oninput: () => query.later() });
  names.value = written(given.namespaces ?? {});
  const subscriber = h("input", { ...text, value: given.subscriber ?? "", required: true });
  const id = h("input", { ...text, value: given.id ?? "", disabled: Boolean(kept) });
  const target = h("input", { ...text, value: given.delivery_target ?? "outbox" });
  const told = h("div", { class: "told-form" });
  const query = queryField({ value: given.query ?? "", namespaces: () => names.value, onsubmit: save });
  const submit = h("button", { type: "submit" }, kept ? "Save" : "Subscribe");

  async function save() {
    const asked = { query: query.field.value, namespaces: read(names.value), delivery_target: target.value.trim() || "outbox" };
    if (!who.subscriber) asked.subscriber = subscriber.value.trim() || undefined;
    if (!kept && id.value.trim()) asked.id = id.value.trim();
    submit.disabled = true;
    try {
      const done = kept ? await change(kept.id, asked) : await subscribe(asked);
      node.close();
      toast(kept ? `Saved as revision ${done.revision}` : `Subscribed: ${done.id}`);
      ondone(done);
    } catch (error) {
      submit.disabled = false;
      if (error.position) {
        query.refuse(error, asked.query);
        query.field.area.focus();
      } else hold(told, problem(error));
    }
  }

  const node = dialog(
    kept ? "Change the subscription" : "New subscription",
    [
      query.node,
      h(
        "div",
        { class: "pair" },
        !who.subscriber && labelled("Subscriber", subscriber, "Whose mailbox it is for."),
        labelled("Id", id, kept ? "Stays as it is." : "Made for you if you leave it empty."),
      ),
      h(
        "div",
        { class: "pair" },
        labelled("Namespaces", names, "prefix = name, a line each; or the name of a shared map."),
        labelled("Delivery target", target, "outbox: to the mailbox."),
      ),
      told,
    ],
    [button("Cancel", { class: "plain", onclick: () => node.close() }), submit],
    save,
  );
  node.classList.add("large");
  query.check();
  query.field.area.focus();
}
