// The dialog to create or change a subscription.

import { change, subscribe } from "./api.js";
import { queryField } from "./query_field.js";
import { dialog } from "./dialog.js";
import { h, hold } from "./dom.js";
import { button, labelled } from "./fields.js";
import { formatNamespaces, parseNamespaces } from "./namespaces.js";
import { problem } from "./problem.js";
import { toast } from "./toast.js";

/** `kept`: the subscription to change. `draft`: initial values of a new one. */
export function subscriptionForm({ who, kept, draft = {}, ondone }) {
  const given = kept ?? draft;
  const text = { spellcheck: "false", autocapitalize: "off", autocomplete: "off" };
  const names = h("textarea", { ...text, rows: 2, oninput: () => query.later() });
  names.value = formatNamespaces(given.namespaces ?? {});
  const subscriber = h("input", { ...text, value: given.subscriber ?? "", required: true });
  const id = h("input", { ...text, value: given.id ?? "", disabled: Boolean(kept) });
  const target = h("input", { ...text, value: given.delivery_target ?? "outbox" });
  const message = h("div", { class: "form-feedback" });
  const query = queryField({ value: given.query ?? "", namespaces: () => names.value, onsubmit: save });
  const submit = h("button", { type: "submit" }, kept ? "Save" : "Subscribe");

  async function save() {
    const body = { query: query.field.value, namespaces: parseNamespaces(names.value), delivery_target: target.value.trim() || "outbox" };
    if (!who.subscriber) body.subscriber = subscriber.value.trim() || undefined;
    if (!kept && id.value.trim()) body.id = id.value.trim();
    submit.disabled = true;
    try {
      const done = kept ? await change(kept.id, body) : await subscribe(body);
      node.close();
      toast(kept ? `Saved as revision ${done.revision}` : `Subscribed: ${done.id}`);
      ondone(done);
    } catch (error) {
      submit.disabled = false;
      if (error.position) {
        query.refuse(error, body.query);
        query.field.area.focus();
      } else hold(message, problem(error));
    }
  }

  const node = dialog(
    kept ? "Change the subscription" : "New subscription",
    [
      query.node,
      h(
        "div",
        { class: "pair" },
        !who.subscriber && labelled("Subscriber", subscriber, "Who gets the deliveries."),
        labelled("Id", id, kept ? "Cannot be changed." : "Generated if empty."),
      ),
      h(
        "div",
        { class: "pair" },
        labelled("Namespaces", names, "prefix = URI, one per line; = URI: the default namespace; or the name of a shared prefix map."),
        labelled("Delivery target", target, "outbox: the mailbox. webhook:NAME: a webhook."),
      ),
      message,
    ],
    [button("Cancel", { class: "plain", onclick: () => node.close() }), submit],
    save,
  );
  node.classList.add("large");
  query.check();
  query.field.area.focus();
}
