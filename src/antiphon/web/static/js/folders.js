// Folders of the hub's machine: what a user types, and what the hub says about it. Pure.

/** Split a path that is being typed into the folder that is listed and the beginning of a name. */
export function splitPath(text) {
  const at = text.lastIndexOf("/");
  if (at < 0) return { parent: text === "~" ? "~" : "", prefix: text === "~" ? "" : text };
  return { parent: text.slice(0, at) || "/", prefix: text.slice(at + 1) };
}

/** The paths that complete a typed text. */
export function completions(text, folders) {
  const { parent } = splitPath(text);
  const before = text.includes("/") ? text.slice(0, text.lastIndexOf("/") + 1) : parent ? `${parent}/` : "";
  return folders.map((name) => before + name);
}

/** What is wrong with a folder, as a sentence; null if nothing is. */
export function problemOf({ state, path }) {
  if (state === "missing") return `There is no folder ${path} on the hub's machine.`;
  if (state === "not_a_folder") return `${path} is not a folder.`;
  if (state === "unreadable") return `The hub cannot read ${path}.`;
  return null;
}

/** The folders of the sessions, the latest first. */
export function foldersOf(sessions, most = 12) {
  const byTime = [...sessions].sort((one, two) =>
    String(two.updatedAt ?? "").localeCompare(String(one.updatedAt ?? "")),
  );
  return [...new Set(byTime.map((entry) => entry.cwd).filter(Boolean))].slice(0, most);
}

/** The recent folders that match a text: any part of the path. */
export function recentOnes(recent, text) {
  const words = text.trim().toLowerCase();
  return recent.filter((path) => path.toLowerCase().includes(words));
}
