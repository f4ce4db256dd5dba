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

const DECLARED = /^<\?xml\s[^>]*?\sencoding\s*=\s*["\']([\w.-]+)["\']/;

/** The encoding of a message: by its byte order mark or its declaration, else UTF-8. */
function encodingOf(bytes) {
  const [first, second] = bytes;
  if (first === 0xfe && second === 0xff) return "utf-16be";
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xef) return "utf-8";
  if (first === 0 && second === 0x3c) return "utf-16be";
  if (first === 0x3c && second === 0) return "utf-16le";
  const head = String.fromCharCode(...bytes.subarray(0, 1024));
  return DECLARED.exec(head)?.[1] ?? "utf-8";
}

/** Bytes → text; null if they are not in the encoding of the message, or it is not supported. */
export function decode(bytes) {
  const encoding = encodingOf(bytes);
  try {
    return new TextDecoder(encoding, { fatal: true, ignoreBOM: encoding === "utf-8" }).decode(bytes);
  } catch {
    return null;
  }
}

/** base64 → bytes. */
export const bytesOf = (base64) => Uint8Array.from(atob(base64), (unit) => unit.charCodeAt(0));
