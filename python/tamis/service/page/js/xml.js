// XML as text: syntax colours, and an indented form. Lenient: the text may be malformed.

const PARTS =
  /(?<comment><!--[^]*?(?:-->|$))|(?<cdata><!\[CDATA\[[^]*?(?:\]\]>|$))|(?<meta><[?!][^>]*>?)|(?<tag><\/?[^\s<>/="']+(?:"[^"]*"|'[^']*'|[^<>"'])*>?)|(?<entity>&[^;\s<]*;?)|(?<text>[^<&]+|<)/g;

const INNER = /(?<string>"[^"]*"?|'[^']*'?)|(?<name>[^\s"'=<>/]+)(?=\s*=)|(?<mark>[<>/=]+)|(?<element>[^\s"'=<>/]+)/g;

/** The coloured parts: `start`, `end`, `kind`. */
export function xmlParts(text) {
  const found = [];
  for (const match of text.matchAll(PARTS)) {
    const start = match.index;
    const { comment, cdata, meta, tag, entity } = match.groups;
    if (comment || cdata || meta) found.push({ start, end: start + match[0].length, kind: "aside" });
    else if (entity) found.push({ start, end: start + entity.length, kind: "entity" });
    else if (tag) {
      for (const inner of tag.matchAll(INNER)) {
        const kind = ["string", "name", "mark", "element"].find((one) => inner.groups[one]);
        found.push({ start: start + inner.index, end: start + inner.index + inner[0].length, kind });
      }
    }
  }
  return found;
}

/** The names of elements and attributes in a text, in the order of the alphabet. Declarations of namespaces are none. */
export function namesIn(text) {
  const elements = new Set();
  const attributes = new Set();
  for (const { start, end, kind } of xmlParts(text)) {
    const name = text.slice(start, end);
    if (kind === "element") elements.add(name);
    else if (kind === "name" && !/^xmlns(:|$)/.test(name)) attributes.add(name);
  }
  return { elements: [...elements].sort(), attributes: [...attributes].sort() };
}

/** Indented where white space has no meaning; unchanged if it is malformed. */
export function pretty(text) {
  const forest = treesOf(text);
  return forest === null ? text : indentedAll(forest, "").join("\n");
}

/** The trees of elements; null if tags do not match. */
function treesOf(text) {
  const root = { children: [] };
  const open = [root];
  for (const match of text.matchAll(PARTS)) {
    const [part] = match;
    const parent = open.at(-1);
    if (!match.groups.tag) {
      const isText = Boolean(match.groups.text || match.groups.entity || match.groups.cdata);
      parent.children.push({ text: part, kind: !isText ? "aside" : part.trim() ? "text" : "blank" });
    } else if (part.startsWith("</")) {
      if (open.length === 1 || nameOf(parent.open) !== nameOf(part)) return null;
      parent.close = part;
      open.pop();
    } else {
      const element = { open: part, children: [] };
      parent.children.push(element);
      if (!part.endsWith("/>")) open.push(element);
    }
  }
  return open.length === 1 ? root.children : null;
}

const nameOf = (tag) => /^<\/?([^\s<>/]+)/.exec(tag)?.[1];

function indented(node, margin) {
  if (node.text !== undefined) return margin + node.text;
  if (!node.close) return margin + node.open;
  if (!node.children.length || holdsText(node)) return margin + flat(node);
  return [margin + node.open, ...indentedAll(node.children, `${margin}  `), margin + node.close].join("\n");
}

const indentedAll = (nodes, margin) =>
  nodes.filter((node) => node.kind !== "blank").map((node) => indented(node, margin));

const holdsText = (node) => node.children.some((child) => child.kind === "text");

function flat(node) {
  if (node.text !== undefined) return node.text;
  return node.open + node.children.map(flat).join("") + (node.close ?? "");
}
