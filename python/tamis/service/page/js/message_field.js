// An input for a message, with samples.

import { h } from "./dom.js";
import { editor } from "./editor.js";
import { choice, labelled } from "./fields.js";
import { SAMPLES } from "./samples.js";
import { xmlParts } from "./xml.js";

/** `onsample(sample)`: a sample was chosen. `oninput()`: after every change. */
export function messageField({ value, rows = 16, oninput, onsample = () => {}, onsubmit }) {
  const field = editor({ label: "Message", parts: xmlParts, value, rows, oninput, onsubmit });
  const samples = choice([["", "Choose …"], ...SAMPLES.map((sample, place) => [place, sample.name])], {
    onchange: () => {
      const sample = SAMPLES[samples.value];
      samples.value = "";
      if (!sample) return;
      field.value = sample.message;
      onsample(sample);
      oninput();
    },
  });
  return { field, node: h("div", { class: "message" }, labelled("Sample", samples), field.node) };
}
