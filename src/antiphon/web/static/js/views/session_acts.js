// What owners do with a session: archive and delete, each with an undo.

import { ask } from "../dialog.js";
import { h, replace } from "../dom.js";
import { readEntry } from "../listing.js";
import { UNDO } from "../removing.js";
import { keep } from "../storage.js";
import { safeLine } from "../text_safety.js";
import { ago, shortPath } from "../words.js";
import { UNTITLED } from "./title.js";
import { tell } from "./toasts.js";

/** Whether this user may archive and delete sessions. */
export function mayRemove(app) {
  return app.role === null || app.role === "owner";
}

function named(app, id) {
  const entry = app.sessions.find((each) => each.sessionId === id);
  const title = app.session?.id === id ? app.session.title : entry?.title;
  return safeLine(title ?? "", 80) || UNTITLED;
}

/** Delete a session in a while. Until then a toast offers to keep it. */
export function removeSession(app, id) {
  const title = named(app, id);
  app.removals.add(id, (error) => tell(app, `“${title}” was not deleted`, error));
  const undo = async () => {
    if (!app.removals.has(id)) throw new Error("It was deleted for good.");
    await app.removals.undo(id);
    await app.open(id);
  };
  app.emit("told", {
    title: `“${title}” is deleted`,
    message: "For all users. Files that the agent changed stay.",
    shown: UNDO,
    action: { label: "Undo", run: () => undo().catch((error) => tell(app, "The session was not brought back", error)) },
  });
  setTimeout(() => app.removals.has(id) || keep(`draft.${id}`, null), UNDO + 1000);
}

/** Hide a session from the lists. It keeps everything, and can be brought back. */
export async function archiveSession(app, id) {
  const title = named(app, id);
  try {
    await app.call("session/archive", { sessionId: id });
  } catch (error) {
    tell(app, `“${title}” was not archived`, error);
    return;
  }
  app.hide(id);
  app.emit("told", {
    title: `“${title}” is archived`,
    message: "You find it under “Archived sessions” in the menu above the list.",
    shown: UNDO,
    action: { label: "Undo", run: () => bringBack(app, id) },
  });
}

async function bringBack(app, id) {
  try {
    await app.call("session/unarchive", { sessionId: id });
    await app.relist();
    await app.open(id);
  } catch (error) {
    tell(app, "The session was not brought back", error);
  }
}

/** List the archived sessions, with a button to bring each back. */
export async function showArchived(app) {
  let sessions;
  try {
    sessions = (await app.call("session/list", { archived: "only" })).sessions ?? [];
  } catch (error) {
    tell(app, "The archived sessions cannot be shown", error);
    return;
  }
  const now = Date.now();
  const entries = sessions.map(readEntry);
  await ask({
    title: "Archived sessions",
    body: (close) => {
      if (!entries.length) return h("p", { class: "note" }, "No session is archived.");
      const list = h("ul", { class: "archived" });
      replace(list, entries.map((entry) => row(app, entry, now, close)));
      return list;
    },
  });
}

function row(app, entry, now, close) {
  const title = safeLine(entry.title ?? "", 80) || UNTITLED;
  const run = () => {
    close();
    bringBack(app, entry.sessionId);
  };
  return h(
    "li",
    null,
    h("span", null, title, h("small", null, [shortPath(entry.cwd), ago(entry.updatedAt, now)].join(" · "))),
    mayRemove(app) ? h("button", { type: "button", "aria-label": `Bring back ${title}`, onclick: run }, "Bring back") : null,
  );
}
