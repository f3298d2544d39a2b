// All changes of a session by file, merged where the diffs fit each other, in the order of the first changes. Pure.

import { Merge } from "./merge.js";
import { readPatch } from "./patch.js";

/** Lines of one file that are merged; what follows stays apart. */
const MOST_LINES = 20_000;

/**
 * @returns {{path: string, oldPath: string|null, operation: string, calls: string[], binary: boolean,
 *   parts: {operation: string, hunks: object[]}[], told: boolean}[]} `told`: whether there is a diff of it
 */
export function changesOf(tools) {
  const files = new Map();
  for (const tool of tools) {
    for (const part of tool.content ?? []) {
      if (part?.type !== "diff" || !Array.isArray(part.changes)) continue;
      const text = part.patch?.format === "git_patch" && typeof part.patch.text === "string" ? part.patch.text : "";
      const read = readPatch(text).files;
      part.changes.forEach((change, at) => {
        if (typeof change?.path === "string") take(files, tool.id, change, read[at] ?? null);
      });
    }
  }
  return [...files.values()].map((file) => file.done()).filter((file) => file.operation !== "none");
}

function take(files, call, change, read) {
  const { path, oldPath, operation } = change;
  let file = files.get(path);
  if (!file && operation === "move" && files.has(oldPath)) {
    file = files.get(oldPath);
    file.path = path;
    file.oldPath ??= oldPath;
    files.delete(oldPath);
    files.set(path, file);
  }
  if (!file) {
    file = new Changed(path, ["move", "copy"].includes(operation) ? (oldPath ?? null) : null, operation);
    files.set(path, file);
  }
  file.take(call, operation, read);
}

class Changed {
  #parts = [];
  #calls = new Set();
  #told = false;
  #binary = false;
  #lines = 0;

  constructor(path, oldPath, operation) {
    this.path = path;
    this.oldPath = oldPath;
    this.first = operation;
    this.existed = operation !== "add";
    this.exists = this.existed;
  }

  take(call, operation, read) {
    this.#calls.add(call);
    const again = operation === "add" && this.exists && this.#parts.length > 0;
    this.exists = operation !== "delete";
    if (!read) return;
    this.#binary ||= read.binary;
    if (!read.hunks.length) return;
    this.#told = true;
    this.#lines += read.hunks.reduce((sum, { lines }) => sum + lines.length, 0);
    const last = this.#parts.at(-1);
    if (last && !again && this.#lines <= MOST_LINES && last.merge.apply(read.hunks)) return;
    const merge = new Merge(operation !== "add");
    const fits = merge.apply(read.hunks);
    this.#parts.push({ operation, merge, hunks: fits ? null : read.hunks });
  }

  done() {
    const { path, oldPath, existed, exists } = this;
    const parts = this.#parts.map(({ operation, merge, hunks }) => ({ operation, hunks: hunks ?? merge.hunks() }))
      .filter(({ hunks }) => hunks.length);
    const plain = existed ? (exists ? (oldPath ? this.first : "modify") : "delete") : exists ? "add" : "none";
    const undone = this.#told && !parts.length && plain === "modify" && !this.#binary;
    return { path, oldPath, operation: undone ? "none" : plain, calls: [...this.#calls], binary: this.#binary, parts,
      told: this.#told };
  }
}

/** A changed file as git would write it. `shown(path)` is how paths are written. */
export function patchOf(file, shown = (path) => path) {
  return file.parts.length
    ? file.parts.map((part, at) => patchText(file, at === 0 ? file.operation : "modify", part.hunks, shown)).join("")
    : patchText(file, file.operation, [], shown);
}

/** The patch of one part of a file. */
export function patchText({ path, oldPath }, operation, hunks, shown) {
  const name = (side, given) => quoted(`${side}/${shown(given).replace(/^[\\/]+/, "")}`);
  const moved = oldPath && ["move", "copy"].includes(operation);
  const before = moved ? oldPath : path;
  const word = operation === "copy" ? "copy" : "rename";
  const bare = (given) => name("x", given).replace(/^("?)x\//, "$1");
  return [
    `diff --git ${name("a", before)} ${name("b", path)}`,
    operation === "add" ? "new file mode 100644" : null,
    operation === "delete" ? "deleted file mode 100644" : null,
    moved ? `${word} from ${bare(before)}` : null,
    moved ? `${word} to ${bare(path)}` : null,
    hunks.length ? `--- ${operation === "add" ? "/dev/null" : name("a", before)}` : null,
    hunks.length ? `+++ ${operation === "delete" ? "/dev/null" : name("b", path)}` : null,
    ...hunks.flatMap(hunkLines),
  ].filter((line) => line !== null).map((line) => `${line}\n`).join("");
}

function hunkLines({ oldStart, newStart, section, lines }) {
  const count = (other) => lines.filter(({ sign }) => sign !== other).length;
  const head = `@@ -${oldStart},${count("+")} +${newStart},${count("-")} @@${section ? ` ${section}` : ""}`;
  return [head, ...lines.map(({ sign, text }) => (sign === "+" || sign === "-" ? sign : " ") + text)];
}

/** A path as git writes it: in quotes if it has a character that would part it. */
function quoted(path) {
  return /[\0-\x1f"\\\x7f]/.test(path) ? JSON.stringify(path) : path;
}
