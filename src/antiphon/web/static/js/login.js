// Getting in: the code of a printed link is exchanged for a cookie, and the cookie for tickets.

/** The hub knows this browser not, or not any more. */
export class NotLetIn extends Error {}

/**
 * The code stands behind the `#`, which browsers send to nobody; it is taken out of the address at once,
 * which names the session then that the link leads to.
 * @returns {Promise<boolean|null>} whether the link was good; null without one
 */
export async function logIn() {
  const given = new URLSearchParams(location.hash.slice(1));
  const code = given.get("login");
  if (code === null) return null;
  const session = given.get("session");
  const shown = session ? `#/s/${encodeURIComponent(session)}` : "";
  history.replaceState(null, "", location.pathname + location.search + shown);
  const answer = await post("/login", { code });
  return answer.ok;
}

/** A ticket opens one WebSocket. */
export async function newTicket() {
  const answer = await post("/ticket");
  if (answer.status === 401 || answer.status === 403) throw new NotLetIn();
  if (!answer.ok) throw new Error(`The hub answered ${answer.status}.`);
  return (await answer.json()).ticket;
}

export async function logOut() {
  await post("/logout");
}

function post(path, body) {
  return fetch(path, {
    method: "POST",
    credentials: "same-origin",
    cache: "no-store",
    body: body === undefined ? undefined : JSON.stringify(body),
  });
}
