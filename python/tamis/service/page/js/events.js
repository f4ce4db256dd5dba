// Server-sent events with fetch(): an EventSource cannot send a token.

import { ApiError, request } from "./api.js";

const FIRST_DELAY = 500;
const MAX_DELAY = 10_000;

/** The service sends a heartbeat every 15 seconds; after this many milliseconds the connection is dead. */
const HEARTBEAT_TIMEOUT = 40_000;

/**
 * Deliveries of a mailbox, until the signal; reconnects with backoff and resumes after the last event.
 * Calls `on.delivery(delivery)`, `on.open()`, `on.broken()`, and `on.refused(error)` when it gives up.
 */
export async function follow(subscriber, signal, on) {
  let last = null;
  let delay = FIRST_DELAY;
  while (!signal.aborted) {
    try {
      await connect(subscriber, last, signal, {
        open: () => {
          delay = FIRST_DELAY;
          on.open();
        },
        event: (id, data) => {
          last = id;
          on.delivery(JSON.parse(data));
        },
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        on.refused(error);
        return;
      }
    }
    if (signal.aborted) return;
    on.broken();
    await sleep(delay, signal);
    delay = Math.min(delay * 2, MAX_DELAY);
  }
}

async function connect(subscriber, last, signal, on) {
  const dead = new AbortController();
  const stop = () => dead.abort();
  signal.addEventListener("abort", stop);
  let timer;
  const restartTimer = () => {
    clearTimeout(timer);
    timer = setTimeout(stop, HEARTBEAT_TIMEOUT);
  };
  try {
    restartTimer();
    const headers = last === null ? {} : { "Last-Event-ID": last };
    const answer = await request("GET", "/v1/deliveries/events", { params: { subscriber }, headers, signal: dead.signal });
    on.open();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const take = eventsOf(on.event);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      restartTimer();
      take(value);
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/** Chunks of text → events, each with its id and its data. */
export function eventsOf(event) {
  let rest = "";
  let id = null;
  let data = [];
  return (piece) => {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const at = line.indexOf(":");
      const value = line.slice(at + 1).replace(/^ /, "");
      if (line === "") {
        if (data.length) event(id, data.join("\n"));
        data = [];
      } else if (line.startsWith("id:")) id = value;
      else if (line.startsWith("data:")) data.push(value);
    }
  };
}

function sleep(milliseconds, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      done();
    });
  });
}
