// The log-in form.

import { h, hold } from "../dom.js";
import { labelled } from "../fields.js";
import { mark } from "../icons.js";
import { problem } from "../problem.js";

/** `begin(token)`: log in. `reason`: why the last session ended. */
export function logIn(app, begin, reason) {
  const token = h("input", { type: "password", name: "token", autocomplete: "off", spellcheck: "false", required: true });
  const message = h("div", { class: "feedback" }, reason && problem({ reason, status: 401 }));
  const submit = h("button", { type: "submit" }, "Log in");

  async function go(event) {
    event.preventDefault();
    const given = token.value.trim();
    if (!given) return token.focus();
    submit.disabled = true;
    try {
      await begin(given);
    } catch (error) {
      hold(message, problem(error));
      submit.disabled = false;
      token.select();
    }
    return undefined;
  }

  document.title = "Log in · tamis";
  hold(
    app,
    h(
      "main",
      { id: "main", class: "door", tabindex: "-1" },
      h(
        "form",
        { class: "card", onsubmit: go, novalidate: true },
        h("div", { class: "brand" }, mark(), h("h1", {}, "tamis")),
        h("p", { class: "lead" }, "Subscribe to XML messages by query, publish them, receive what matches."),
        labelled("Token", token, "Kept until this tab is closed."),
        submit,
        message,
      ),
      h("p", { class: "hint" }, "No token yet? ", h("code", {}, "tamis tokens create --role admin"), " creates one. ", h("a", { href: "/docs" }, "The API")),
    ),
  );
  token.focus();
  return () => {};
}
