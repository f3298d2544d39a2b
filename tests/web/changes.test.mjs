// The diffs of a session become one per file, which says the same as all of them one after the other.

import assert from "node:assert/strict";
import { test } from "node:test";
import { changesOf, patchOf } from "../../src/antiphon/web/static/js/fold/changes.js";
import { diffLines } from "../../src/antiphon/web/static/js/fold/line_diff.js";
import { Merge } from "../../src/antiphon/web/static/js/fold/merge.js";
import { readPatch } from "../../src/antiphon/web/static/js/fold/patch.js";

/** The hunks between two texts, with some lines of context. */
function hunksOf(before, after, context) {
  const hunks = [];
  let [old, now, hunk, quiet] = [1, 1, null, 0];
  const lines = diffLines(before, after);
  lines.forEach(({ sign, text }, at) => {
    const near = lines.slice(Math.max(0, at - context), at + context + 1).some((line) => line.sign !== " ");
    if (near) {
      if (!hunk) hunks.push((hunk = { oldStart: old, newStart: now, section: "", lines: [] }));
      hunk.lines.push({ sign, text });
    } else hunk = null;
    if (sign !== "+") old += 1;
    if (sign !== "-") now += 1;
    quiet += 1;
  });
  for (const each of hunks) {
    if (each.lines.every(({ sign }) => sign === "+")) each.oldStart -= 1;
    if (each.lines.every(({ sign }) => sign === "-")) each.newStart -= 1;
  }
  return hunks;
}

/** A text after hunks. */
function patched(before, hunks) {
  const after = [];
  let at = 0;
  for (const { oldStart, lines } of hunks) {
    const from = lines.some(({ sign }) => sign !== "+") ? oldStart - 1 : oldStart;
    while (at < from) after.push(before[at++]);
    for (const { sign, text } of lines) {
      if (sign !== "+") assert.equal(before[at++], text);
      if (sign !== "-") after.push(text);
    }
  }
  return [...after, ...before.slice(at)];
}

let seed = 7;
const random = (most) => {
  seed = (seed * 1103515245 + 12345) % 2147483648;
  return seed % most;
};

function edited(lines) {
  const made = [...lines];
  for (let count = 1 + random(3); count > 0; count -= 1) {
    const at = random(made.length + 1);
    made.splice(at, random(3), ...Array.from({ length: random(3) }, () => `line ${random(40)}`));
  }
  return made;
}

test("patches one after the other are the same as their merge", () => {
  for (let round = 0; round < 400; round += 1) {
    const first = Array.from({ length: random(25) }, (_, at) => `line ${at}`);
    const merge = new Merge(true);
    let text = first;
    for (let count = 1 + random(5); count > 0; count -= 1) {
      const next = edited(text);
      assert.ok(merge.apply(hunksOf(text, next, random(4))), `round ${round}`);
      text = next;
    }
    const hunks = merge.hunks();
    assert.deepEqual(patched(first, hunks), text, `round ${round}`);
    const turned = hunks.map(({ oldStart, newStart, lines }) => ({ oldStart: newStart, newStart: oldStart,
      lines: lines.map(({ sign, text: said }) => ({ sign: { "+": "-", "-": "+" }[sign] ?? " ", text: said })) }));
    assert.deepEqual(patched(text, turned), first, `round ${round}, back`);
  }
});

test("a patch that does not fit changes nothing", () => {
  const merge = new Merge(true);
  assert.ok(merge.apply(hunksOf(["a", "b"], ["a", "c"], 1)));
  const before = merge.hunks();
  assert.equal(merge.apply([{ oldStart: 2, newStart: 2, lines: [{ sign: "-", text: "z" }] }]), false);
  assert.deepEqual(merge.hunks(), before);
  assert.equal(new Merge(false).apply([{ oldStart: 4, newStart: 4, lines: [{ sign: "-", text: "z" }] }]), false);
});

const call = (id, ...changes) => ({ id, content: changes.map(([operation, path, text, oldPath]) =>
  ({ type: "diff", changes: [{ operation, path, oldPath }], patch: { format: "git_patch", text } })) });
const modify = (name, start, removed, added) =>
  `--- a/${name}\n+++ b/${name}\n@@ -${start} +${start} @@\n-${removed}\n+${added}\n`;
const create = (name, ...lines) =>
  `--- /dev/null\n+++ b/${name}\n@@ -0,0 +1,${lines.length} @@\n${lines.map((line) => `+${line}\n`).join("")}`;

test("files come in the order of their first changes, each with all of its calls", () => {
  const files = changesOf([
    call("1", ["modify", "/w/a.txt", modify("a.txt", 3, "one", "two")]),
    call("2", ["add", "/w/b.txt", create("b.txt", "x", "y")]),
    call("3", ["modify", "/w/a.txt", modify("a.txt", 3, "two", "three")],
      ["modify", "/w/b.txt", modify("b.txt", 2, "y", "z")]),
  ]);
  assert.deepEqual(files.map(({ path, operation, calls }) => [path, operation, calls]), [
    ["/w/a.txt", "modify", ["1", "3"]], ["/w/b.txt", "add", ["2", "3"]]]);
  assert.equal(patchOf(files[0], (path) => path.slice(3)),
    "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -3,1 +3,1 @@\n-one\n+three\n");
  assert.equal(patchOf(files[1]),
    "diff --git a/w/b.txt b/w/b.txt\nnew file mode 100644\n--- /dev/null\n+++ b/w/b.txt\n@@ -0,0 +1,2 @@\n+x\n+z\n");
  assert.deepEqual(readPatch(patchOf(files[1])).files[0].hunks[0].lines.map(({ text }) => text), ["x", "z"]);
});

test("what was undone, or made and deleted, is no change", () => {
  const gone = "--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
  assert.deepEqual(changesOf([
    call("1", ["modify", "a", modify("a", 1, "x", "y")]), call("2", ["modify", "a", modify("a", 1, "y", "x")]),
    call("3", ["add", "n", create("n", "x")]), call("4", ["delete", "n", gone]),
  ]), []);
});

test("diffs that do not fit each other stay apart, in order; a move keeps what was before it", () => {
  const [file] = changesOf([call("1", ["modify", "a", modify("a", 1, "x", "y")]),
    call("2", ["modify", "a", modify("a", 1, "other", "z")])]);
  assert.deepEqual(file.parts.map(({ hunks }) => hunks[0].lines.map(({ sign, text }) => sign + text)),
    [["-x", "+y"], ["-other", "+z"]]);
  const [moved] = changesOf([call("1", ["move", "b", "rename from a\nrename to b\n", "a"]),
    call("2", ["modify", "b", modify("b", 1, "x", "y")])]);
  assert.deepEqual([moved.path, moved.oldPath, moved.operation, moved.parts.length], ["b", "a", "move", 1]);
  assert.match(patchOf(moved), /^diff --git a\/a b\/b\nrename from a\nrename to b\n--- a\/a\n/);
});

test("what is malformed is passed over", () => {
  assert.deepEqual(changesOf([{ id: "1", content: [null, { type: "diff" }, { type: "diff", changes: [null, {}] },
    { type: "diff", changes: [{ path: "a", operation: "modify" }], patch: { format: "git_patch", text: 3 } }] }])
    .map(({ path, told }) => [path, told]), [["a", false]]);
});
