// Completion in a query: a list of functions and of names in the message, below the text area, while a word is typed.
// The arrow keys choose, Enter and Tab take what is chosen, Escape closes the list.

import { h, hold, newId } from "./dom.js";
import { FUNCTIONS } from "./functions.js";
import { namesIn } from "./xml.js";

const SHOWN = 8;
const WORD = /@?[\p{L}_][\p{L}\p{N}_.:-]*$|@$/u;

/** `message()`: the text of the message whose names are offered. Returns the list. */
export function completion(area, message) {
  const id = newId("completions");
  const list = h("ul", { class: "completions", role: "listbox", id, "aria-label": "Completions", hidden: true });
  let offered = [];
  let chosen = -1;
  area.setAttribute("aria-autocomplete", "list");
  area.setAttribute("aria-controls", id);

  function offer() {
    const before = area.value.slice(0, area.selectionStart);
    const word = isInString(before) ? "" : WORD.exec(before)?.[0] ?? "";
    offered = word && area.selectionStart === area.selectionEnd ? candidates(word, message()) : [];
    chosen = -1;
    show(word);
  }

  function show(word) {
    const options = offered.map((one, place) =>
      h(
        "li",
        { role: "option", id: `${id}-${place}`, "aria-selected": String(place === chosen), onpointerdown: (event) => (event.preventDefault(), take(place, word)) },
        h("code", {}, one.text),
        h("span", { class: "hint" }, one.kind),
      ),
    );
    hold(list, options);
    list.hidden = !options.length;
    if (chosen < 0) area.removeAttribute("aria-activedescendant");
    else area.setAttribute("aria-activedescendant", `${id}-${chosen}`);
  }

  function take(place, word) {
    const end = area.selectionStart;
    area.setRangeText(offered[place].text, end - word.length, end, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  }

  function close() {
    offered = [];
    chosen = -1;
    show("");
  }

  area.addEventListener("input", offer);
  area.addEventListener("blur", close);
  area.addEventListener("keydown", (event) => {
    if (!offered.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const word = WORD.exec(area.value.slice(0, area.selectionStart))?.[0] ?? "";
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      chosen = (chosen + step + offered.length + (chosen < 0 && step < 0 ? 1 : 0)) % offered.length;
      show(word);
    } else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) take(chosen, word);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return list;
}

/** Whether the end of a text is inside a string literal. */
function isInString(text) {
  return /["']/.test(text.replace(/"[^"]*"|'[^']*'/g, ""));
}

function candidates(word, message) {
  const { elements, attributes } = namesIn(message);
  const all = [
    ...elements.map((text) => ({ text, kind: "element" })),
    ...attributes.map((text) => ({ text: `@${text}`, kind: "attribute" })),
    ...FUNCTIONS.map((text) => ({ text: `${text}(`, kind: "function" })),
  ];
  const start = word.toLowerCase();
  return all.filter((one) => one.text.toLowerCase().startsWith(start) && one.text !== word).slice(0, SHOWN);
}
