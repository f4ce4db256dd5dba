// Dead letters: what failed, where and why; replay.

import * as api from "../api.js";
import { go } from "../address.js";
import { confirmed } from "../dialog.js";
import { debounced, h, hold } from "../dom.js";
import { drafts } from "../drafts.js";
import { spot } from "../editor.js";
import { button, labelled } from "../fields.js";
import { plural, time } from "../format.js";
import { dump } from "../hex.js";
import { icon } from "../icons.js";
import { code } from "../highlight.js";
import { problem } from "../problem.js";
import { totalsOf } from "../status.js";
import { failed, toast } from "../toast.js";
import { bytesOf, decode, indexOf } from "../utf8.js";
import { xmlParts } from "../xml.js";

export function letters(main, { feed }) {
  const source = h("input", { type: "search", placeholder: "Any", "data-key": "/", oninput: () => again() });
  const reason = h("input", { type: "search", placeholder: "Any", oninput: () => again() });
  const list = h("div", { class: "list", role: "list", "aria-busy": "true" });
  const more = h("p", { class: "hint" });
  const all = button("Replay all", { class: "plain", disabled: true, onclick: () => replayAll() }, icon("replay"));
  let shown = [];
  let dead = null;

  async function load() {
    try {
      const found = await api.letters({ source: source.value.trim(), code: reason.value.trim() });
      const open = new Set([...list.querySelectorAll("details[open]")].map((one) => one.dataset.id));
      shown = found.letters;
      hold(list, shown.length ? shown.map((one) => card(one, open.has(one.letter))) : empty());
      more.textContent = found.more ? "There are older ones: set a filter." : "";
      all.disabled = !shown.some((one) => !one.replayed);
    } catch (error) {
      hold(list, problem(error));
    }
    list.setAttribute("aria-busy", "false");
  }

  const again = debounced(150, load);

  async function replay(keys, repeated) {
    try {
      const { replayed, refused } = await api.replay(keys, repeated);
      if (replayed) toast(`${plural(replayed, "message")} replayed: back in the inbox`);
      for (const text of refused.slice(0, 3)) toast(text, "failed");
      await load();
    } catch (error) {
      failed(error);
    }
  }

  async function replayAll() {
    const keys = shown.filter((one) => !one.replayed).map((one) => one.letter);
    const text = `${plural(keys.length, "message")} go back into the inbox. Those that fail again become new dead letters.`;
    if (await confirmed("Replay all listed letters?", text, "Replay")) await replay(keys, false);
  }

  function card(one, isOpen) {
    const body = h("div", { class: "payload" });
    const node = h(
      "details",
      { class: "card letter", "data-id": one.letter, role: "listitem" },
      h(
        "summary",
        {},
        h("time", { datetime: one.received }, time(one.received)),
        h("span", { class: "badge bad" }, one.code),
        h("span", { class: "preview" }, one.reason),
        h("code", {}, one.message),
        one.replayed && h("span", { class: "badge" }, "replayed"),
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
    const facts = {
      Message: one.message,
      Source: `${one.source}, ${one.offset}`,
      ...(one.line !== null && { Where: `line ${one.line}, column ${one.column}` }),
      ...(one.subscription !== null && { Subscription: one.subscription }),
      ...(one.replayed !== null && { Replayed: time(one.replayed) }),
    };
    try {
      const bytes = bytesOf((await api.letter(one.letter)).base64);
      const text = decode(bytes);
      hold(
        body,
        h("p", { class: "reason" }, one.reason),
        h("dl", { class: "facts" }, Object.entries(facts).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
        text !== null && code(text, xmlParts, one.position === null ? [] : spot(text, indexOf(text, one.position))),
        h("details", { class: "bytes", open: text === null }, h("summary", {}, "Bytes"), dump(bytes, one.position)),
        h(
          "div",
          { class: "actions" },
          text !== null &&
            button(
              "Correct and publish",
              {
                class: "plain",
                onclick: () => {
                  drafts.message = text;
                  go("publish");
                },
              },
              icon("edit"),
            ),
          button(one.replayed ? "Replay again" : "Replay", { onclick: () => replay([one.letter], true) }, icon("replay")),
        ),
      );
      // Scroll to the marked position.
      const place = body.querySelector(".wrong, .wrong-after");
      if (place) place.closest("pre").scrollTop = place.offsetTop - place.closest("pre").clientHeight / 2;
    } catch (error) {
      hold(body, problem(error));
    }
  }

  const empty = () =>
    h("div", { class: "empty" }, icon("letters"), h("h2", {}, "No dead letters"), h("p", {}, "All messages and deliveries succeeded."));

  main.append(h("div", { class: "toolbar" }, labelled("Source", source), labelled("Code", reason), all), list, more);
  // Reload when the counts change.
  const stop = feed.on(({ latest }) => {
    const count = latest ? totalsOf(latest) : null;
    const sum = count && count.dead + count.failed;
    if (dead !== null && sum !== null && sum !== dead) load();
    dead = sum ?? dead;
  });
  load();
  return () => {
    stop();
    again.cancel();
  };
}
