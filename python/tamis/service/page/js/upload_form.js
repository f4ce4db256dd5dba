// The dialog to upload local data: a new set, or all records of one.

import { putData } from "./api.js";
import { dialog } from "./dialog.js";
import { h, hold } from "./dom.js";
import { labelled } from "./fields.js";
import { plural } from "./format.js";
import { problem } from "./problem.js";
import { toast } from "./toast.js";

const TYPES = { xml: "application/xml", csv: "text/csv", parquet: "application/vnd.apache.parquet" };

/** `kept`: the set whose records are replaced; none: a new set. */
export function uploadForm({ kept, ondone }) {
  const text = { spellcheck: "false", autocapitalize: "off", autocomplete: "off" };
  const name = h("input", { ...text, value: kept?.name ?? "", disabled: Boolean(kept), required: true });
  const file = h("input", { type: "file", accept: ".xml,.csv,.parquet", required: true });
  const key = h("input", { ...text, value: kept?.key ?? "", disabled: Boolean(kept) });
  const record = h("input", text);
  const message = h("div", { class: "form-feedback" });
  const submit = h("button", { type: "submit" }, "Upload");

  async function save() {
    const [chosen] = file.files;
    const type = chosen && TYPES[chosen.name.split(".").pop().toLowerCase()];
    if (!name.value.trim() || !type) {
      hold(message, problem({ reason: "name the data, and choose a file *.xml, *.csv or *.parquet" }));
      return;
    }
    submit.disabled = true;
    hold(message, h("p", { class: "hint", role: "status" }, "Uploading and building …"));
    try {
      const params = { record: record.value.trim(), key: kept ? "" : key.value.trim() };
      const done = await putData(name.value.trim(), chosen, type, params);
      node.close();
      toast(`${done.name}: version ${done.current.number} with ${plural(done.current.records, "record")}`);
      ondone(done);
    } catch (error) {
      submit.disabled = false;
      hold(message, problem(error));
    }
  }

  const node = dialog(
    kept ? `Replace the records of ${kept.name}` : "Upload data",
    [
      h("div", { class: "pair" }, labelled("Name", name, "As queries name it: collection('name')."), labelled("File", file, "XML, CSV or Parquet.")),
      h(
        "div",
        { class: "pair" },
        labelled("Record key", key, kept ? "Cannot be changed." : "The path of a value that identifies a record, such as /row/id. May be empty."),
        labelled("Record element", record, "Of an XML file: each such element is a record. Empty: the whole file is one."),
      ),
      message,
    ],
    [h("button", { type: "button", class: "plain", onclick: () => node.close() }, "Cancel"), submit],
    save,
  );
}
