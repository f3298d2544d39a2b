// Where the page can show a file that the session names: among the changes, or where it is part of a prompt.

import { h } from "../../dom.js";
import { safeLine } from "../../text_safety.js";
import { within } from "../../words.js";

/** What shows a file: {changes: path} or {message: id}; null if nothing does. Pure. */
export function placeOf(path, touched, items) {
  if (typeof path !== "string" || !path) return null;
  if (touched.some((file) => file.path === path)) return { changes: path };
  const message = items.findLast((item) => item.kind === "message" && item.role === "user"
    && item.blocks.some((block) => pathIn(block.resource?.uri) === path));
  return message ? { message: message.id } : null;
}

/** The path of a file address; null if it is none. */
function pathIn(uri) {
  if (typeof uri !== "string" || !uri.startsWith("file:///")) return null;
  try {
    return decodeURIComponent(uri.slice("file://".length));
  } catch {
    return null;
  }
}

/** A path, as a button if the page can show the file. Nothing is read but what the session has reported. */
export function pathLink(around, path, shown = safeLine(within(path ?? "", around.session.cwd), 300)) {
  const { session, app } = around;
  const place = placeOf(path, session.touched, session.items);
  if (!place) return h("span", null, shown);
  const open = () => (place.changes ? app.emit("changes", { path }) : app.emit("reveal", { id: place.message }));
  const title = place.changes ? "Show all changes of this file" : "Show the prompt with this file";
  return h("button", { type: "button", class: "path-link", title, onclick: open }, shown);
}
