// Rows of a diff, unified or side by side: numbers, words that changed, and long unchanged runs folded. Pure.

/** So many unchanged lines are shown around a change. */
const CONTEXT = 3;
/** Fewer lines than that are not worth folding away. */
const WORTH = 5;
const WORDS = 2000;

/**
 * @returns {{kind: "line"|"fold"|"gap", sign?, old?, new?, text?, mark?: [number, number], rows?, label?}[]}
 */
export function unifiedRows(hunks) {
  const rows = [];
  hunks.forEach((hunk, at) => {
    if (at > 0 || hunk.section) rows.push({ kind: "gap", label: hunk.section, first: at === 0 });
    rows.push(...folded(numbered(hunk)));
  });
  return rows;
}

function numbered({ oldStart, newStart, lines }) {
  let [old, now] = [oldStart, newStart];
  const rows = lines.map((source) => {
    const { sign, text } = source;
    const row = { kind: "line", sign: sign === "+" || sign === "-" ? sign : " ", text, source };
    if (row.sign !== "+") row.old = old++;
    if (row.sign !== "-") row.new = now++;
    return row;
  });
  markWords(rows);
  return rows;
}

/** In a run of removed lines and as many added ones, what differs within each pair. */
function markWords(rows) {
  for (let at = 0; at < rows.length; at += 1) {
    if (rows[at].sign !== "-") continue;
    let middle = at;
    while (rows[middle]?.sign === "-") middle += 1;
    let end = middle;
    while (rows[end]?.sign === "+") end += 1;
    if (middle - at === end - middle) {
      for (let pair = 0; pair < middle - at; pair += 1) mark(rows[at + pair], rows[middle + pair]);
    }
    at = Math.max(at, end - 1);
  }
}

function mark(removed, added) {
  const [one, two] = [removed.text, added.text];
  if (one.length > WORDS || two.length > WORDS) return;
  const most = Math.min(one.length, two.length);
  let start = 0;
  while (start < most && one[start] === two[start]) start += 1;
  let end = 0;
  while (end < most - start && one[one.length - 1 - end] === two[two.length - 1 - end]) end += 1;
  // Lines that share next to nothing are two lines, not one that changed.
  if (start + end < most * 0.3 || (start === one.length && start === two.length)) return;
  removed.mark = [start, one.length - end];
  added.mark = [start, two.length - end];
}

function folded(rows) {
  const shown = [];
  for (let at = 0; at < rows.length; ) {
    let end = at;
    while (end < rows.length && rows[end].sign === " ") end += 1;
    if (end === at) {
      shown.push(rows[at]);
      at += 1;
      continue;
    }
    const before = at === 0 ? 0 : CONTEXT;
    const after = end === rows.length ? 0 : CONTEXT;
    if (end - at <= before + after + WORTH) shown.push(...rows.slice(at, end));
    else {
      shown.push(...rows.slice(at, at + before));
      shown.push({ kind: "fold", rows: rows.slice(at + before, end - after) });
      shown.push(...rows.slice(end - after, end));
    }
    at = end;
  }
  return shown;
}

/** The same rows side by side: {kind: "pair", left, right}, folds and gaps as they are. */
export function splitRows(rows) {
  const pairs = [];
  for (let at = 0; at < rows.length; ) {
    const row = rows[at];
    if (row.kind !== "line") {
      pairs.push(row);
      at += 1;
    } else if (row.sign === " ") {
      pairs.push({ kind: "pair", left: row, right: row });
      at += 1;
    } else {
      const removed = [];
      const added = [];
      for (; rows[at]?.sign === "-"; at += 1) removed.push(rows[at]);
      for (; rows[at]?.sign === "+"; at += 1) added.push(rows[at]);
      for (let pair = 0; pair < Math.max(removed.length, added.length); pair += 1) {
        pairs.push({ kind: "pair", left: removed[pair] ?? null, right: added[pair] ?? null });
      }
    }
  }
  return pairs;
}
