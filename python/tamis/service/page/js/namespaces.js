// Prefixes as people type them: `prefix = name` a line, or one word, the name of a map that the tenant shares.

/** As the API takes them. */
export function read(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (lines.length === 1 && !lines[0].includes("=")) return lines[0];
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf("=");
      return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim().replace(/^(["'])(.*)\1$/, "$2")];
    }),
  );
}

/** As people type them. */
export function written(given) {
  if (typeof given === "string") return given;
  return Object.entries(given).map(([prefix, name]) => `${prefix} = ${name}`).join("\n");
}
