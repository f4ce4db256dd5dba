// Unsaved input, kept while the page is open. The playground and the publish view share the message and its headers.

import { SAMPLES } from "./samples.js";

export const drafts = { message: SAMPLES[0].message, query: SAMPLES[0].queries[0], namespaces: SAMPLES[0].namespaces, headers: "" };
