// The sessions of a hub: the list, and how it is kept up.

import { ours } from "./fold/content.js";

const PAGES = 20;

/** An entry of `session/list`, with what is ours in it beside the rest. */
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

/** A list after news of it: what changed stays in its place, what is new comes first. */
export function keptUp(sessions, changed, gone) {
  const news = new Map(changed.map((entry) => [entry.sessionId, readEntry(entry)]));
  const listed = [];
  for (const entry of sessions) {
    if (!gone.includes(entry.sessionId)) listed.push(news.get(entry.sessionId) ?? entry);
    news.delete(entry.sessionId);
  }
  return [...news.values(), ...listed].filter((entry) => !entry.archived);
}

/** Why a session cannot be opened, where the hub found that: damaged, or newer. */
function faultOf(fault) {
  if (fault === null || typeof fault !== "object") return null;
  return fault.kind === "newer" ? "newer" : "damaged";
}
