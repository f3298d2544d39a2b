// What a person should hear of, from the list of sessions and the questions of the session that is shown. Pure.

import { safeLine } from "./text_safety.js";

const TITLE = 120;
const TEXT = 300;
const WORKS = ["running", "requires_action"];

/** How many sessions wait for an answer, other than the one that is shown. */
export function waitingElsewhere(sessions, shownId) {
  return sessions.filter((entry) => entry.state === "requires_action" && entry.sessionId !== shownId).length;
}

/** The title of a tab, with the number of questions that wait. */
export function withCount(count, words) {
  return count ? `(${count}) ${words}` : words;
}

/**
 * What is new in the list of sessions: a question in a session that is not shown, or the end of a turn; and the
 * tags of news that are over. `known` has the states of the last call by session id, and is brought up to date.
 */
export function listNews(known, sessions, shownId) {
  const news = [];
  const ended = [];
  for (const { sessionId, state, title } of sessions) {
    const before = known.get(sessionId);
    known.set(sessionId, state);
    if (before === undefined || before === state) continue;
    if (before === "requires_action") ended.push(`${sessionId}/waits`);
    if (state === "requires_action" && sessionId !== shownId) {
      news.push(told("question", sessionId, title, "The agent asks a question", `${sessionId}/waits`));
    } else if (state === "idle" && WORKS.includes(before)) {
      news.push(told("turn", sessionId, title, "Finished", `${sessionId}/turn`));
    }
  }
  const listed = new Set(sessions.map((entry) => entry.sessionId));
  for (const id of [...known.keys()]) if (!listed.has(id)) known.delete(id);
  return { news, ended };
}

/**
 * The questions of a session that were opened since the last call, and the tags of those that have ended. `known`
 * has the ids of the open ones. A question is news when this page can answer it: before, its words are not known.
 */
export function questionNews(known, session) {
  const open = session.questions.filter((question) => question.state === "open");
  const fresh = open.filter((question) => question.mine && !known.has(question.id));
  const ended = [...known].filter((id) => !open.some((question) => question.id === id));
  for (const id of ended) known.delete(id);
  for (const { id } of fresh) known.add(id);
  const news = fresh.map((question) => {
    const text = question.title || question.message || "The agent asks a question";
    return told("question", session.id, session.title, text, `${session.id}/${question.id}`);
  });
  return { news, ended: ended.map((id) => `${session.id}/${id}`) };
}

function told(kind, session, title, text, tag) {
  return { kind, session, tag, title: safeLine(title ?? "", TITLE) || "Untitled", text: safeLine(text, TEXT) };
}
