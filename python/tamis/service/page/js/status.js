// Polls the status each second while the page is visible, and computes rates.

import { status } from "./api.js";

const INTERVAL_MS = 1000;

/** Seconds that rates are averaged over: counts grow once per batch. */
const WINDOW = 10;

/** Seconds of samples that are kept. */
export const MEMORY = 180;

/** `on(listener)` is called with each status, until `stop()`. */
export function statusFeed() {
  const listeners = new Set();
  const stopped = new AbortController();
  const feed = { latest: null, error: null, samples: [], on, stop };
  let timer;

  async function turn() {
    if (!document.hidden) {
      try {
        feed.latest = await status(stopped.signal);
        feed.error = null;
        remember(feed);
      } catch (error) {
        if (stopped.signal.aborted) return;
        feed.error = error;
      }
      for (const listener of listeners) listener(feed);
    }
    if (!stopped.signal.aborted && feed.error?.status !== 401) timer = setTimeout(turn, INTERVAL_MS);
  }

  function on(listener) {
    listeners.add(listener);
    if (feed.latest || feed.error) listener(feed);
    return () => listeners.delete(listener);
  }

  function stop() {
    stopped.abort();
    clearTimeout(timer);
    listeners.clear();
  }

  turn();
  return feed;
}

/** Totals over all sources. */
export function totalsOf({ job }) {
  const totals = { read: 0, matched: 0, deliveries: 0, dead: 0, failed: 0 };
  for (const source of job?.sources ?? []) for (const name of Object.keys(totals)) totals[name] += source.totals[name];
  return totals;
}

/** Messages of a source that are not yet read; null if unknown. */
export function lagOf(source, { waiting_messages: waiting }) {
  return waiting[source.name] ?? source.last?.lag?.messages ?? null;
}

/** Messages of all sources that are not yet read. */
export function wholeLag(status) {
  if (!status.job) return sum(Object.values(status.waiting_messages));
  return sum(status.job.sources.map((source) => lagOf(source, status) ?? 0));
}

const sum = (values) => values.reduce((all, one) => all + one, 0);

/** The newest batch of all sources. */
export function lastBatch({ job }) {
  const batches = (job?.sources ?? []).map((source) => source.last).filter(Boolean);
  return batches.sort((a, b) => Date.parse(b.started) - Date.parse(a.started))[0] ?? null;
}

function remember(feed) {
  const { latest, samples } = feed;
  const now = performance.now() / 1000;
  const totals = totalsOf(latest);
  const run = latest.job?.started ?? null;
  const before = samples.findLast((one) => one.run === run && now - one.time >= WINDOW) ?? samples.find((one) => one.run === run);
  const rate = (name) => (before ? Math.max(0, totals[name] - before.totals[name]) / Math.max(now - before.time, 1) : 0);
  samples.push({
    time: now,
    run,
    totals,
    messages: rate("read"),
    matched: rate("matched"),
    deliveries: rate("deliveries"),
    lag: wholeLag(latest),
    batch: lastBatch(latest)?.seconds ?? 0,
  });
  while (samples[0].time < now - MEMORY) samples.shift();
}
