// Shows the view that the URL fragment names.

import { address } from "./address.js";
import { call } from "./api.js";
import { h, hold } from "./dom.js";
import { problem } from "./problem.js";
import { sees } from "./views.js";

/** Show the current view in `main`, and follow changes of the fragment. */
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
    if (!sees(context.who, view)) {
      // Not in the menu of this user. Show the error that the service answers with.
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
