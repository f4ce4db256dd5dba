// The token of the session, kept until the tab is closed.

const KEY = "tamis.token";

/** The secret of the token; null without a login. */
export const secret = () => sessionStorage.getItem(KEY);

export const keep = (given) => sessionStorage.setItem(KEY, given);

export const forget = () => sessionStorage.removeItem(KEY);
