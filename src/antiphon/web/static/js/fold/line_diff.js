// Which lines of two texts are the same: the shortest way from one to the other (Myers), unless that is long.

const MOST_STEPS = 200;
const MOST_LINES = 3000;

/**
 * @param {string[]} before @param {string[]} after
 * @returns {{sign: string, text: string}[]} removed lines before added ones, where both stand at one place
 */
export function diffLines(before, after) {
  const steps = trace(before, after);
  return steps === null ? all(before, after) : tidy(walk(steps, before, after));
}

function all(before, after) {
  return [...before.map((text) => ({ sign: "-", text })), ...after.map((text) => ({ sign: "+", text }))];
}

/** The furthest places reached after each number of changes, or null where there are too many. */
function trace(before, after) {
  const [n, m] = [before.length, after.length];
  if (n > MOST_LINES || m > MOST_LINES) return null;
  const most = Math.min(n + m, MOST_STEPS);
  let reached = new Map([[1, 0]]);
  const steps = [];
  for (let d = 0; d <= most; d += 1) {
    steps.push(new Map(reached));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && (reached.get(k - 1) ?? -1) < (reached.get(k + 1) ?? -1));
      let x = down ? reached.get(k + 1) ?? 0 : (reached.get(k - 1) ?? 0) + 1;
      while (x < n && x - k < m && before[x] === after[x - k]) x += 1;
      reached.set(k, x);
      if (x >= n && x - k >= m) return steps;
    }
  }
  return null;
}

function walk(steps, before, after) {
  const lines = [];
  let [x, y] = [before.length, after.length];
  for (let d = steps.length - 1; d >= 0; d -= 1) {
    const reached = steps[d];
    const k = x - y;
    const down = k === -d || (k !== d && (reached.get(k - 1) ?? -1) < (reached.get(k + 1) ?? -1));
    const from = down ? k + 1 : k - 1;
    const startX = d === 0 ? 0 : reached.get(from) ?? 0;
    const startY = d === 0 ? 0 : startX - from;
    while (x > startX && y > startY) lines.push({ sign: " ", text: before[(y -= 1, x -= 1)] });
    if (d > 0) {
      lines.push(down ? { sign: "+", text: after[startY] } : { sign: "-", text: before[startX] });
      [x, y] = [startX, startY];
    }
  }
  return lines.reverse();
}

/** Within a run of changes, what was removed stands first. */
function tidy(lines) {
  const found = [];
  let added = [];
  for (const line of lines) {
    if (line.sign === "+") added.push(line);
    else if (line.sign === "-") found.push(line);
    else {
      found.push(...added, line);
      added = [];
    }
  }
  return [...found, ...added];
}
