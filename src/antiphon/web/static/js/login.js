// Login: the code of a link is exchanged for a cookie, and the cookie for tickets.

/** The hub does not know this browser, or no longer does. */
export class NotLetIn extends Error {}

/**
 * Log in with the code of the link. The code is after the `#`, which browsers do not send. It is removed from
 * the address at once; the address then names the session of the link.
 * @returns {Promise<{good: boolean|null, name?: string|null}>} whether the link was good, which is null without
 *   one, and the name that it gives the user
 */
export async function logIn() {
  const given = new URLSearchParams(location.hash.slice(1));
  const code = given.get("login");
  if (code === null) return { good: null };
  const session = given.get("session");
  const shown = session ? `#/s/${encodeURIComponent(session)}` : "";
  history.replaceState(null, "", location.pathname + location.search + shown);
  const answer = await post("/login", { code });
  const { name = null } = answer.status === 200 ? await answer.json() : {};
  return { good: answer.ok, name };
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
