// The views in the order of the menu, each with the roles that see it and the resource it needs; `operates`: only admins
// of the broker see it.

import { deliveries } from "./views/deliveries.js";
import { letters } from "./views/letters.js";
import { network } from "./views/network.js";
import { now } from "./views/now.js";
import { playground } from "./views/playground.js";
import { publish } from "./views/publish.js";
import { subscriptions } from "./views/subscriptions.js";

export const sees = (who, view) => view.roles.includes(who.role) && (!view.operates || who.operates);

export const VIEWS = [
  { name: "now", title: "Now", roles: ["admin", "publisher", "subscriber"], asks: "/v1/status", show: now },
  { name: "subscriptions", title: "Subscriptions", roles: ["admin", "subscriber"], asks: "/v1/subscriptions", show: subscriptions },
  { name: "playground", title: "Playground", roles: ["admin", "subscriber"], asks: "/v1/subscriptions", show: playground },
  { name: "publish", title: "Publish", roles: ["admin", "publisher"], asks: "/v1/sources", show: publish },
  { name: "deliveries", title: "Deliveries", roles: ["admin", "subscriber"], asks: "/v1/deliveries", show: deliveries },
  { name: "letters", title: "Dead letters", roles: ["admin"], asks: "/v1/dead-letters", show: letters },
  { name: "network", title: "Network", roles: ["admin"], operates: true, asks: "/v1/network", show: network },
];
