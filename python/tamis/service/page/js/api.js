// The HTTP API: requests with the token, errors in the form of the service.

import { secret } from "./session.js";

/** An error response, or no response (status 0). */
export class ApiError extends Error {
  constructor(status, detail) {
    super(detail.reason);
    this.status = status;
    this.code = detail.code;
    this.reason = detail.reason;
    /** In a query or a message: `offset` (bytes), `line`, `column`. */
    this.position = detail.position ?? null;
  }
}

/** Dispatches "refused" when the token is no longer valid. */
export const refused = new EventTarget();

/** Send a request with the token; the response. */
export async function request(method, path, { params = {}, json, body, headers = {}, signal, token = secret() } = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = given.length ? `?${new URLSearchParams(given)}` : "";
  const sent = { ...headers, Authorization: `Bearer ${token}` };
  if (json !== undefined) sent["Content-Type"] = "application/json";
  const options = { method, headers: sent, body: json === undefined ? body : JSON.stringify(json), signal };
  let response;
  try {
    response = await fetch(`${path}${query}`, { ...options, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { code: "unreachable", reason: "the service does not answer; it may be restarting" });
  }
  if (response.ok) return response;
  const error = new ApiError(response.status, await detailOf(response));
  if (response.status === 401 && token === secret()) refused.dispatchEvent(new CustomEvent("refused", { detail: error }));
  throw error;
}

/** Send a request; the JSON of the response. */
export async function call(method, path, options) {
  const response = await request(method, path, options);
  return response.status === 204 ? null : response.json();
}

async function detailOf(response) {
  try {
    return (await response.json()).error;
  } catch {
    return { code: "internal", reason: `the service answered with ${response.status}` };
  }
}

const resource = (folder, id) => `/v1/${folder}/${encodeURIComponent(id)}`;

export const whoAmI = (token) => call("GET", "/v1/token", { token });
export const status = (signal) => call("GET", "/v1/status", { signal });
export const network = () => call("GET", "/v1/network");
export const sources = () => call("GET", "/v1/sources");
export const check = (json, signal) => call("POST", "/v1/check", { json, signal });
export const match = (json, signal) => call("POST", "/v1/match", { json, signal });

export const subscriptions = (params, signal) => call("GET", "/v1/subscriptions", { params, signal });
export const subscription = (id) => call("GET", resource("subscriptions", id));
export const subscribe = (json) => call("POST", "/v1/subscriptions", { json });
export const change = (id, json) => call("PATCH", resource("subscriptions", id), { json });
export const remove = (id) => call("DELETE", resource("subscriptions", id));

export const acknowledge = (json) => call("POST", "/v1/deliveries/ack", { json });

export const letters = (params) => call("GET", "/v1/dead-letters", { params });
export const letter = (key) => call("GET", resource("dead-letters", key));
/** `again`: also those that were replayed before. */
export const replay = (keys, again) => call("POST", "/v1/dead-letters/replay", { json: { letters: keys, again } });

/** Publish a message; the service generates an id if none is given. Headers may be left out. */
export function publish(xml, source, id, headers) {
  const json = { id: id || undefined, xml, headers };
  return call("POST", "/v1/messages", { params: { source }, json });
}
