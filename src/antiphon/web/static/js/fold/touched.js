// The files that tool calls have changed, with how many lines, by the order of their first change.

import { countPatch } from "./patch.js";

const CHANGES = new Set(["edit", "delete", "move"]);
const known = new WeakMap();

/** @returns {{path: string, calls: string[], added: number, removed: number}[]} */
export function touchedBy(tools) {
  const byPath = new Map();
  for (const tool of tools) {
    for (const { path, added, removed } of filesOf(tool)) {
      if (!byPath.has(path)) byPath.set(path, { path, calls: [], added: 0, removed: 0 });
      const file = byPath.get(path);
      if (!file.calls.includes(tool.id)) file.calls.push(tool.id);
      file.added += added;
      file.removed += removed;
    }
  }
  return [...byPath.values()];
}

export const touches = (tool) => filesOf(tool).length > 0;

function filesOf(tool) {
  const before = known.get(tool);
  if (before?.version === tool.version) return before.files;
  const files = [];
  for (const part of tool.content) {
    if (part?.type !== "diff" || !Array.isArray(part.changes)) continue;
    const counts = typeof part.patch?.text === "string" ? countPatch(part.patch.text) : [];
    part.changes.forEach((change, at) => {
      if (typeof change?.path !== "string") return;
      const { added = 0, removed = 0 } = counts[at] ?? {};
      files.push({ path: change.path, added, removed });
    });
  }
  if (!files.length && CHANGES.has(tool.toolKind)) {
    for (const { path } of tool.locations) if (path) files.push({ path, added: 0, removed: 0 });
  }
  known.set(tool, { version: tool.version, files });
  return files;
}
