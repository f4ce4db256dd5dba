// The functions of queries, as docs/language.md lists them (a test compares both).

export const FUNCTIONS = [
  "abs", "avg", "boolean", "ceiling", "collection", "concat", "contains", "count", "distinct-values", "doc",
  "empty", "ends-with", "exists", "false", "floor", "format-number", "lang", "last", "local-name",
  "lower-case", "matches", "max", "min", "name", "namespace-uri", "normalize-space", "not", "number",
  "position", "replace", "round", "starts-with", "string", "string-join", "string-length", "substring",
  "substring-after", "substring-before", "sum", "tokenize", "translate", "true", "upper-case", "xs:date",
  "xs:dateTime", "xs:decimal", "xs:double", "xs:integer",
];
