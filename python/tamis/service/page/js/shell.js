// The frame around every view: menu, user, state of the job, keyboard shortcuts.

import { h, hold } from "./dom.js";
import { button } from "./fields.js";
import { icon, mark } from "./icons.js";
import { listenToKeys } from "./keys.js";
import { router } from "./router.js";
import { statusFeed } from "./status.js";
import { VIEWS, sees } from "./views.js";

const STATES = {
  starting: ["The job is starting", "busy"],
  running: ["The job is running", "good"],
  stopping: ["The job is stopping", "busy"],
  stopped: ["The job is stopped", "bad"],
  died: ["The job died", "bad"],
};

/** Show the page of a logged-in user; returns a function that removes it. */
export function shell(app, who, logOut) {
  const feed = statusFeed();
  const offered = VIEWS.filter((view) => sees(who, view));
  const links = offered.map((view) =>
    h("a", { href: `#/${view.name}`, title: view.title }, icon(view.name), h("span", {}, view.title)),
  );
  const main = h("main", { id: "main", tabindex: "-1" });
  const job = h("p", { class: "job", role: "status" });
  const whose = who.operates ? "admin of the broker" : [who.role, who.tenant && `tenant ${who.tenant}`].filter(Boolean).join(", ");
  const top = h(
    "header",
    { class: "top" },
    h("a", { class: "brand", href: "#/now" }, mark(), "tamis"),
    h("nav", { "aria-label": "Views" }, links),
    h(
      "div",
      { class: "foot" },
      job,
      h("div", { class: "who" }, h("div", {}, h("strong", {}, who.subscriber ?? who.name), h("small", {}, whose))),
      button("Log out", { class: "plain quiet", onclick: logOut, "aria-label": "Log out" }, icon("out")),
    ),
  );
  hold(app, h("div", { class: "shell" }, top, main));
  feed.on(({ latest, error }) => {
    const [text, kind] = error ? [error.status === 403 ? "" : "The service does not answer", "bad"] : jobOf(latest);
    // Only on a change: a screen reader would announce it every second.
    if (job.textContent !== text) hold(job, h("i", { class: `dot ${kind}` }), text);
  });
  const leaveRoutes = router(VIEWS, main, links, { who, feed });
  const leaveKeys = listenToKeys(offered);
  return () => {
    feed.stop();
    leaveRoutes();
    leaveKeys();
  };
}

function jobOf({ job }) {
  if (!job) return ["No job has run yet", "busy"];
  if (job.failure) return [`The job is failing: ${job.failure.reason}`, "bad"];
  return STATES[job.state];
}
