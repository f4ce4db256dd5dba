// The service counts UTF-8 bytes; JavaScript counts UTF-16 units.

/** Byte offsets (ascending) → indices of a text. */
export function indices(text, offsets) {
  const found = [];
  let byte = 0;
  let at = 0;
  for (const offset of offsets) {
    while (byte < offset && at < text.length) {
      const point = text.codePointAt(at);
      byte += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
      at += point < 0x10000 ? 1 : 2;
    }
    found.push(at);
  }
  return found;
}

/** A byte offset → an index of a text. */
export const indexOf = (text, offset) => indices(text, [offset])[0];

/** Spans in bytes → spans in the text. */
export function spans(text, nodes) {
  const offsets = [...new Set(nodes.flatMap((node) => [node.start, node.end]))].sort((a, b) => a - b);
  const at = new Map(indices(text, offsets).map((index, place) => [offsets[place], index]));
  return nodes.map((node) => ({ start: at.get(node.start), end: at.get(node.end) }));
}

/** Bytes → text: UTF-16 if there is a byte order mark, else UTF-8; null if they are neither. */
export function decode(bytes) {
  const mark = (bytes[0] << 8) | bytes[1];
  const encoding = mark === 0xfeff ? "utf-16be" : mark === 0xfffe ? "utf-16le" : "utf-8";
  try {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: encoding === "utf-8" }).decode(bytes);
  } catch {
    return null;
  }
}

/** base64 → bytes. */
export const bytesOf = (base64) => Uint8Array.from(atob(base64), (unit) => unit.charCodeAt(0));
