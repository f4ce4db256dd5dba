// The URL fragment names a view and its parameters: `#/deliveries?subscriber=ann`.

/** The view's name and its parameters. */
export function address() {
  const [name, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { name, params: new URLSearchParams(query) };
}

/** Navigate to a view. */
export function go(name, params = {}) {
  location.hash = toFragment(name, params);
}

/** Change the URL without navigating. */
export function replace(name, params) {
  history.replaceState(null, "", toFragment(name, params));
}

function toFragment(name, params) {
  const query = String(new URLSearchParams(params));
  return `#/${name}${query && `?${query}`}`;
}
