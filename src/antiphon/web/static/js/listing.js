// The list of sessions of a hub, and its updates.

import { ours } from "./fold/content.js";

const PAGES = 20;

/** Read an entry of `session/list`, with our `_meta` fields beside the others. */
export function readEntry({ _meta, ...entry }) {
  const { agent = null, state = null, clients = 0, fault = null } = ours(_meta);
  return { ...entry, agent, state: faultOf(fault) ?? state, clients };
}

export async function listAll(peer) {
  const found = [];
  let cursor;
  for (let page = 0; page < PAGES; page += 1) {
    const answer = await peer.request("session/list", cursor ? { cursor } : {});
    found.push(...(answer.sessions ?? []));
    cursor = answer.nextCursor;
    if (!cursor) break;
  }
  return found.map(readEntry);
}

/** Apply an update to a list: changed sessions keep their place, new ones come first. */
export function keptUp(sessions, changed, gone) {
  const news = new Map(changed.map((entry) => [entry.sessionId, readEntry(entry)]));
  const listed = [];
  for (const entry of sessions) {
    if (!gone.includes(entry.sessionId)) listed.push(news.get(entry.sessionId) ?? entry);
    news.delete(entry.sessionId);
  }
  return [...news.values(), ...listed].filter((entry) => !entry.archived);
}

/** Why a session cannot be opened: damaged, or newer. Null if it can. */
function faultOf(fault) {
  if (fault === null || typeof fault !== "object") return null;
  return fault.kind === "newer" ? "newer" : "damaged";
}
