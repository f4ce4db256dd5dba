// Server-sent events through fetch(): an EventSource sends no token.

import { ApiError, ask } from "./api.js";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;

/** The service says every 15 seconds that it is there; after so many it is not. */
const SILENCE = 40_000;

/**
 * Deliveries of a mailbox as they come, until the signal; after a break it goes on where it was.
 * `on.delivery(delivery)`, `on.open()`, `on.broken()`, and at the end, if so, `on.refused(error)`.
 */
export async function follow(subscriber, signal, on) {
  let last = null;
  let pause = FIRST_PAUSE;
  while (!signal.aborted) {
    try {
      await once(subscriber, last, signal, {
        open: () => {
          pause = FIRST_PAUSE;
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
    await waited(pause, signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

async function once(subscriber, last, signal, on) {
  const silent = new AbortController();
  const stop = () => silent.abort();
  signal.addEventListener("abort", stop);
  let watch;
  const heard = () => {
    clearTimeout(watch);
    watch = setTimeout(stop, SILENCE);
  };
  try {
    heard();
    const headers = last === null ? {} : { "Last-Event-ID": last };
    const answer = await ask("GET", "/v1/deliveries/events", { params: { subscriber }, headers, signal: silent.signal });
    on.open();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const take = eventsOf(on.event);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      take(value);
    }
  } finally {
    clearTimeout(watch);
    signal.removeEventListener("abort", stop);
  }
}

/** Text in whatever pieces → events, each with its id and its data. */
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

function waited(milliseconds, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      done();
    });
  });
}
