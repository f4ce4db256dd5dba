// Syntax colours of queries. The service decides what a query is; this is only for display.

const PARTS =
  /(?<string>"[^"]*"?|'[^']*'?)|(?<variable>\$[\w.-]+)|(?<keyword>\b(?:for|in|where|return|let|order|by|some|every|satisfies|if|then|else|and|or|not|contains|starts-with|count|string|text)\b(?![\w:-]))|(?<number>\b\d+(?:\.\d+)?\b)|(?<name>@[\w:.*-]+)|(?<mark>[/[\](){}|<>=!]+)/g;

export function queryParts(text) {
  const found = [];
  for (const match of text.matchAll(PARTS)) {
    const [kind] = Object.entries(match.groups).find(([, value]) => value);
    found.push({ start: match.index, end: match.index + match[0].length, kind });
  }
  return found;
}
