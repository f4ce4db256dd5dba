// Logging in: with a token, which is tried at once.

import { h, hold } from "../dom.js";
import { labelled } from "../fields.js";
import { mark } from "../icons.js";
import { problem } from "../problem.js";

/** `begin(token)` tries it; `reason`: why somebody has to log in again. */
export function logIn(app, begin, reason) {
  const token = h("input", { type: "password", name: "token", autocomplete: "off", spellcheck: "false", required: true });
  const told = h("div", { class: "told" }, reason && problem({ reason, status: 401 }));
  const submit = h("button", { type: "submit" }, "Log in");

  async function go(event) {
    event.preventDefault();
    const given = token.value.trim();
    if (!given) return token.focus();
    submit.disabled = true;
    try {
      await begin(given);
    } catch (error) {
      hold(told, problem(error));
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
        labelled("Token", token, "It is kept until this tab is closed."),
        submit,
        told,
      ),
      h("p", { class: "hint" }, "No token yet? ", h("code", {}, "tamis tokens create --role admin"), " makes one. ", h("a", { href: "/docs" }, "The API")),
    ),
  );
  token.focus();
  return () => {};
}
