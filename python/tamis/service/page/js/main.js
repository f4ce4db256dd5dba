// The entry point: log in, show the shell, log out.

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

/** Log in from the form, and move the focus, which was in the form. */
async function enter(token) {
  await begin(token);
  document.getElementById("main").focus({ preventScroll: true });
}

function end(reason) {
  forget();
  leave();
  leave = logIn(app, enter, reason);
}

// As a link it would change the view: move the focus instead.
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
