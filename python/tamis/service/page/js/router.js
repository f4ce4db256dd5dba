// One view at a time: the one that the address names.

import { address } from "./address.js";
import { call } from "./api.js";
import { h, hold } from "./dom.js";
import { problem } from "./problem.js";

/** Shows the view of the address in `main`, and the next one when it changes. */
export function router(views, main, links, context) {
  let leave = () => {};
  let turn = 0;

  async function show() {
    const { name, params } = address();
    const view = views.find((one) => one.name === name) ?? views[0];
    const mine = ++turn;
    for (const open of document.querySelectorAll("dialog[open]")) open.close();
    leave();
    leave = () => {};
    for (const link of links) {
      if (link.getAttribute("href") === `#/${view.name}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    document.title = `${view.title} · tamis`;
    hold(main, h("h1", {}, view.title));
    scrollTo(0, 0);
    if (!view.roles.includes(context.who.role)) {
      // The menu does not have it; who comes by its address hears from the service itself.
      try {
        await call("GET", view.asks);
      } catch (error) {
        if (mine === turn) main.append(problem(error));
        return;
      }
    }
    if (mine === turn) leave = view.show(main, { ...context, params });
  }

  addEventListener("hashchange", show);
  show();
  return () => {
    turn++;
    removeEventListener("hashchange", show);
    leave();
  };
}
