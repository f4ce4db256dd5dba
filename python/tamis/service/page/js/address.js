// The address after `#` names a view, and what it is about: `#/deliveries?subscriber=ann`.

/** The view's name and its parameters. */
export function address() {
  const [name, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { name, params: new URLSearchParams(query) };
}

/** Go to a view. */
export function go(name, params = {}) {
  location.hash = written(name, params);
}

/** Have the address be this one, without going anywhere. */
export function noted(name, params) {
  history.replaceState(null, "", written(name, params));
}

function written(name, params) {
  const query = String(new URLSearchParams(params));
  return `#/${name}${query && `?${query}`}`;
}
