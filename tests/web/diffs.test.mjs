// Patches are read as git writes them, and shown with what really changed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { splitRows, unifiedRows } from "../../src/antiphon/web/static/js/diff_rows.js";
import { diffLines } from "../../src/antiphon/web/static/js/fold/line_diff.js";
import { countPatch, readPatch } from "../../src/antiphon/web/static/js/fold/patch.js";
import { touchedBy } from "../../src/antiphon/web/static/js/fold/touched.js";

const PATCH = `diff --git a/src/a.txt b/src/a.txt
--- a/src/a.txt
+++ b/src/a.txt
@@ -1,4 +1,4 @@ def f():
 one
-two
+2
 three
-- four
++ four
diff --git a/old b/new
rename from old
rename to new
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-bye
\\ No newline at end of file
`;

test("files, hunks and lines", () => {
  const { files, cut } = readPatch(PATCH);
  assert.equal(cut, false);
  assert.deepEqual(files.map(({ path, oldPath, operation, added, removed }) => [path, oldPath, operation,
      added, removed]), [
    ["src/a.txt", "src/a.txt", "modify", 2, 2], ["new", "old", "move", 0, 0], [null, "gone", "delete", 0, 1],
  ]);
  assert.equal(files[0].hunks[0].section, "def f():");
  assert.deepEqual(countPatch(PATCH), [{ added: 2, removed: 2 }, { added: 0, removed: 0 }, { added: 0,
      removed: 1 }]);
});

test("a patch without end is read no further than it can be shown", () => {
  const lines = Array.from({ length: 1000 }, (_, at) => `+line ${at}`).join("\n");
  const { files, cut } = readPatch(`--- /dev/null\n+++ b/x\n@@ -0,0 +1,1000 @@\n${lines}\n`, 100);
  assert.deepEqual([files[0].added, cut], [100, true]);
});

test("what is the same within a change is found again", () => {
  const [before, after] = [["a", "b", "c", "d"], ["a", "x", "c", "d", "e"]];
  assert.deepEqual(diffLines(before, after).map(({ sign, text }) => sign + text), [" a", "-b", "+x", " c",
      " d", "+e"]);
  const patch = `--- a/x\n+++ b/x\n@@ -1,4 +1,5 @@\n${before.map((line) => `-${line}`).join("\n")}\n${
    after.map((line) => `+${line}`).join("\n")}\n`;
  assert.deepEqual(countPatch(patch), [{ added: 2, removed: 1 }]);
});

test("any two texts are told apart without losing a line", () => {
  for (let round = 0; round < 500; round += 1) {
    const some = () => Array.from({ length: Math.floor(Math.random() * 9) }, () =>
        "abc"[Math.floor(Math.random() * 3)]);
    const [before, after] = [some(), some()];
    const lines = diffLines(before, after);
    assert.deepEqual(lines.filter(({ sign }) => sign !== "+").map(({ text }) => text), before);
    assert.deepEqual(lines.filter(({ sign }) => sign !== "-").map(({ text }) => text), after);
  }
});

test("rows are numbered, mark what changed in a line, and fold what did not", () => {
  const lines = [...Array.from({ length: 20 }, (_, at) => ({ sign: " ", text: `${at}` })),
    { sign: "-", text: "let x = 1;" }, { sign: "+", text: "let y = 1;" }];
  const rows = unifiedRows([{ oldStart: 1, newStart: 1, section: "", lines }]);
  assert.deepEqual(rows.map((row) => (row.kind === "fold" ? row.rows.length : row.sign)), [17, " ", " ",
      " ", "-", "+"]);
  assert.deepEqual([rows.at(-2).old, rows.at(-1).new, rows.at(-1).mark], [21, 21, [4, 5]]);
  const pairs = splitRows(rows);
  assert.deepEqual([pairs.at(-1).left.text, pairs.at(-1).right.text], ["let x = 1;", "let y = 1;"]);
});

test("touched files are told once, with all their changes", () => {
  const tool = (id, version = 1) => ({ id, version, toolKind: "edit", locations: [],
    content: [{ type: "diff", changes: [{ operation: "modify", path: "/a" }], patch: { text: PATCH } }] });
  assert.deepEqual(touchedBy([tool("one"), tool("two")]), [{ path: "/a", calls: ["one", "two"], added: 4,
      removed: 4 }]);
});
