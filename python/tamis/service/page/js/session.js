// Who is logged in: a token, kept as long as the tab is open and no longer.

const KEY = "tamis.token";

/** The secret; null if nobody is logged in. */
export const secret = () => sessionStorage.getItem(KEY);

export const keep = (given) => sessionStorage.setItem(KEY, given);

export const forget = () => sessionStorage.removeItem(KEY);
