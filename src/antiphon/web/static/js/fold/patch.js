// Patches as git writes them, read into files, hunks and lines. Some name as changed whatever stands between
// two changes: what is the same there is found again.

import { diffLines } from "./line_diff.js";

/** At most so many lines are read; of more, it is only said that there are more. */
export const MOST_LINES = 20000;

/**
 * @returns {{files: {path: string, oldPath: string|null, operation: string, binary: boolean, added: number,
 *   removed: number, hunks: {oldStart: number, newStart: number, section: string,
 *   lines: {sign: string, text: string}[]}[]}[], cut: boolean}}
 */
export function readPatch(text, most = MOST_LINES) {
  const files = [];
  let file = null;
  let hunk = null;
  let left = { old: 0, new: 0 };
  let at = 0;
  let count = 0;
  const begin = (path, oldPath) => {
    file = { path, oldPath, operation: "modify", binary: false, added: 0, removed: 0, hunks: [] };
    files.push(file);
    hunk = null;
  };
  while (at < text.length) {
    let end = text.indexOf("\n", at);
    if (end < 0) end = text.length;
    const line = text.slice(at, end);
    at = end + 1;
    if (hunk && (left.old > 0 || left.new > 0)) {
      const sign = line[0] ?? " ";
      if (sign === "\\") continue; // no newline at the end of the file
      if (count >= most) return { files: files.map(refined), cut: true };
      count += 1;
      hunk.lines.push({ sign, text: line.slice(1).replace(/\r$/, "") });
      if (sign !== "+") left.old -= 1;
      if (sign !== "-") left.new -= 1;
      continue;
    }
    if (line.startsWith("diff --git ")) begin(null, null);
    else if (line.startsWith("--- ")) {
      if (!file || file.hunks.length) begin(null, null);
      file.oldPath = pathOf(line.slice(4));
      if (file.oldPath === null) file.operation = "add";
    } else if (line.startsWith("+++ ") && file) {
      file.path = pathOf(line.slice(4));
      if (file.path === null) file.operation = "delete";
    } else if (line.startsWith("@@ ") && file) {
      const found = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/.exec(line);
      if (!found) continue;
      left = { old: Number(found[2] ?? 1), new: Number(found[4] ?? 1) };
      hunk = { oldStart: Number(found[1]), newStart: Number(found[3]), section: found[5], lines: [] };
      file.hunks.push(hunk);
    } else if (file) readHeader(file, line);
  }
  return { files: files.map(refined), cut: false };
}

function refined(file) {
  for (const hunk of file.hunks) hunk.lines = refinedLines(hunk.lines);
  const lines = file.hunks.flatMap((hunk) => hunk.lines);
  file.added = lines.filter(({ sign }) => sign === "+").length;
  file.removed = lines.filter(({ sign }) => sign === "-").length;
  return file;
}

function refinedLines(lines) {
  const found = [];
  for (let at = 0; at < lines.length; ) {
    const start = at;
    while (lines[at]?.sign === "-") at += 1;
    const middle = at;
    while (lines[at]?.sign === "+") at += 1;
    if (middle > start && at > middle) {
      const texts = (from, to) => lines.slice(from, to).map(({ text }) => text);
      for (const line of diffLines(texts(start, middle), texts(middle, at))) found.push(line);
    } else for (const line of lines.slice(start, at)) found.push(line);
    if (at < lines.length) found.push(lines[at]);
    at += 1;
  }
  return found;
}

function readHeader(file, line) {
  if (line.startsWith("rename from ") || line.startsWith("copy from ")) {
    file.operation = line.startsWith("rename") ? "move" : "copy";
    file.oldPath = line.replace(/^\w+ from /, "");
  } else if (line.startsWith("rename to ") || line.startsWith("copy to ")) {
    file.path = line.replace(/^\w+ to /, "");
  } else if (line.startsWith("new file")) file.operation = "add";
  else if (line.startsWith("deleted file")) file.operation = "delete";
  else if (line.startsWith("Binary files ") || line.startsWith("GIT binary patch")) file.binary = true;
}

function pathOf(given) {
  const path = given.split("\t")[0].replace(/^"(.*)"$/, "$1");
  return path === "/dev/null" ? null : path.replace(/^[ab]\//, "");
}

/** Of a longer patch, what it says is counted. */
const LONG = 400_000;

/** How many lines a patch adds and removes, by file. */
export function countPatch(text) {
  if (text.length < LONG) return readPatch(text).files.map(({ added, removed }) => ({ added, removed }));
  const counts = [];
  for (const line of linesOf(text)) {
    if (line.startsWith("+++ ")) counts.push({ added: 0, removed: 0 });
    else if (!counts.length) continue;
    else if (line[0] === "+") counts.at(-1).added += 1;
    else if (line[0] === "-" && !line.startsWith("--- ")) counts.at(-1).removed += 1;
  }
  return counts;
}

function* linesOf(text) {
  let at = 0;
  while (at < text.length) {
    const end = text.indexOf("\n", at);
    yield text.slice(at, end < 0 ? text.length : end);
    at = end < 0 ? text.length : end + 1;
  }
}
