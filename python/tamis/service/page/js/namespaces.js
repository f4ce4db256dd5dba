// Namespaces as text: a line `prefix = URI` each, or one word, the name of a shared prefix map.

/** Text → the field `namespaces` of the API. */
export function parseNamespaces(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (lines.length === 1 && !lines[0].includes("=")) return lines[0];
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf("=");
      return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim().replace(/^(["'])(.*)\1$/, "$2")];
    }),
  );
}

/** The field `namespaces` of the API → text. */
export function formatNamespaces(given) {
  if (typeof given === "string") return given;
  return Object.entries(given).map(([prefix, uri]) => `${prefix} = ${uri}`).join("\n");
}
