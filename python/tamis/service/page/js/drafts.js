// What is being written, as long as the page is open: the playground and the publish view share a message.

import { SAMPLES } from "./samples.js";

export const drafts = { message: SAMPLES[0].message, query: SAMPLES[0].queries[0], namespaces: SAMPLES[0].namespaces };
