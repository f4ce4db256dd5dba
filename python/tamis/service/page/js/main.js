// Where it begins: somebody logs in, and from then on the page is theirs until they log out.

import { refused, whoAmI } from "./api.js";
import { forget, keep, secret } from "./session.js";
import { shell } from "./shell.js";
import { logIn } from "./views/log_in.js";

const app = document.getElementById("app");
let leave = () => {};

async function begin(token) {
  const who = await whoAmI(token);
  keep(token);
  leave();
  leave = shell(app, who, () => end());
}

/** Somebody logs in: what had the focus is gone. */
async function enter(token) {
  await begin(token);
  document.getElementById("main").focus({ preventScroll: true });
}

function end(reason) {
  forget();
  leave();
  leave = logIn(app, enter, reason);
}

// It leads into the view that is there; as an address it would lead to another one.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});

refused.addEventListener("refused", (event) => end(event.detail.reason));

try {
  if (secret()) await begin(secret());
  else end();
} catch (error) {
  end(error.reason);
}
