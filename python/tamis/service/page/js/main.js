// Where it begins: somebody logs in, and from then on the page is theirs until they log out.

import { refused, whoAmI } from "./api.js";
import { forget, keep, secret } from "./session.js";
import { shell } from "./shell.js";
import { logIn } from "./views/log_in.js";

const app = document.getElementById("app");
let leave = () => {};

async function begin(token, tell) {
  const who = await whoAmI(token);
  keep(token);
  leave();
  leave = shell(app, who, () => end());
  tell?.();
}

function end(reason) {
  forget();
  leave();
  leave = logIn(app, begin, reason);
}

refused.addEventListener("refused", (event) => end(event.detail.reason));

try {
  if (secret()) await begin(secret());
  else end();
} catch (error) {
  end(error.reason);
}
