// The API: one function that asks, and errors in the one form that the service tells them in.

import { secret } from "./session.js";

/** What the service refuses, or that it does not answer (status 0). */
export class ApiError extends Error {
  constructor(status, detail) {
    super(detail.reason);
    this.status = status;
    this.code = detail.code;
    this.reason = detail.reason;
    /** Of a query or a message: `offset` (bytes), `line`, `column`. */
    this.position = detail.position ?? null;
  }
}

/** Told when a token is good for nothing any more. */
export const refused = new EventTarget();

/** A request with the token, and its answer as it comes. */
export async function ask(method, path, { params = {}, json, body, headers = {}, signal, token = secret() } = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = given.length ? `?${new URLSearchParams(given)}` : "";
  const sent = { ...headers, Authorization: `Bearer ${token}` };
  if (json !== undefined) sent["Content-Type"] = "application/json";
  const options = { method, headers: sent, body: json === undefined ? body : JSON.stringify(json), signal };
  let answer;
  try {
    answer = await fetch(`${path}${query}`, { ...options, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { code: "unreachable", reason: "the service does not answer; it may be restarting" });
  }
  if (answer.ok) return answer;
  const error = new ApiError(answer.status, await detailOf(answer));
  if (answer.status === 401 && token === secret()) refused.dispatchEvent(new CustomEvent("refused", { detail: error }));
  throw error;
}

/** The same, for an answer in JSON. */
export async function call(method, path, options) {
  const answer = await ask(method, path, options);
  return answer.status === 204 ? null : answer.json();
}

async function detailOf(answer) {
  try {
    return (await answer.json()).error;
  } catch {
    return { code: "internal", reason: `the service answers with ${answer.status}` };
  }
}

const named = (folder, id) => `/v1/${folder}/${encodeURIComponent(id)}`;

export const whoAmI = (token) => call("GET", "/v1/token", { token });
export const status = (signal) => call("GET", "/v1/status", { signal });
export const sources = () => call("GET", "/v1/sources");
export const check = (json, signal) => call("POST", "/v1/check", { json, signal });
export const match = (json, signal) => call("POST", "/v1/match", { json, signal });

export const subscriptions = (params, signal) => call("GET", "/v1/subscriptions", { params, signal });
export const subscription = (id) => call("GET", named("subscriptions", id));
export const subscribe = (json) => call("POST", "/v1/subscriptions", { json });
export const change = (id, json) => call("PATCH", named("subscriptions", id), { json });
export const remove = (id) => call("DELETE", named("subscriptions", id));

export const acknowledge = (json) => call("POST", "/v1/deliveries/ack", { json });

export const letters = (params) => call("GET", "/v1/dead-letters", { params });
export const letter = (key) => call("GET", named("dead-letters", key));
/** Once more; `again`: also those that were replayed before. */
export const replay = (keys, again) => call("POST", "/v1/dead-letters/replay", { json: { letters: keys, again } });

/** Publish a message; its id is made if none is given. */
export function publish(xml, source, id) {
  const json = id ? { id, xml } : { xml };
  return call("POST", "/v1/messages", { params: { source }, json });
}
