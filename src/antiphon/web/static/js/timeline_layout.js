// The layout of a timeline: lanes and bars in shares of its width. Pure.
//
// Pauses are cut to a short break, and so is a period that is far longer than all others together. A session
// that continued the next morning, or waited an hour for an answer, is as readable as one of a minute.

export const LANES = ["prompt", "turn", "tool", "question"];
const ROWS = 4;
/** Periods up to this many milliseconds are not cut. */
const WHOLE = 2000;

const endOf = (item, now) => Math.max(item.start, item.end ?? now);

/** Time between one change and the next: `{start, end, busy}`, gap-free. */
export function stretches(items, now) {
  const changes = new Map();
  const change = (at, by) => changes.set(at, (changes.get(at) ?? 0) + by);
  for (const item of items) {
    change(item.start, 1);
    change(endOf(item, now), -1);
  }
  const points = [...changes.keys()].sort((one, two) => one - two);
  const found = [];
  let open = 0;
  for (let at = 0; at < points.length - 1; at += 1) {
    open += changes.get(points[at]);
    found.push({ start: points[at], end: points[at + 1], busy: open > 0 });
  }
  return found;
}

/** From a time to a share of the width, 0 to 1; `breaks` are where time was cut. */
export function scaleOf(items, now) {
  const parts = stretches(
    items.filter((item) => LANES.includes(item.kind)),
    now,
  );
  if (!parts.some((part) => part.busy)) return { place: () => 0, breaks: [] };
  const busy = parts
    .filter((part) => part.busy)
    .sort((one, two) => one.end - one.start - two.end + two.start);
  const usual = busy[(busy.length - 1) >> 1];
  const whole = Math.max(WHOLE, 2 * (usual.end - usual.start));
  let sum = 0;
  for (const part of busy) {
    part.shown = Math.min(part.end - part.start, Math.max(whole, sum));
    sum += part.shown;
  }
  const pause = Math.max(WHOLE / 4, sum / 4);
  const cut = Math.max(
    1,
    sum / Math.max(24, 4 * parts.filter((part) => !part.busy && part.end - part.start > pause).length),
  );
  let before = 0;
  for (const part of parts) {
    const length = part.end - part.start;
    if (!part.busy) part.shown = length > pause ? cut : Math.min(length, cut);
    part.at = before;
    part.isCut = part.shown < length / 2 && length > WHOLE;
    before += part.shown;
  }
  const width = Math.max(1, before);
  const place = (time) => {
    let low = 0;
    let high = parts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (parts[middle].start <= time) low = middle;
      else high = middle - 1;
    }
    const { start, end, at, shown } = parts[low];
    const share = end > start ? Math.min(1, Math.max(0, (time - start) / (end - start))) : 0;
    return Math.min(1, (at + share * shown) / width);
  };
  const breaks = parts.filter((part) => part.isCut).map((part) => (part.at + part.shown / 2) / width);
  return { place, breaks };
}

/**
 * `{lanes: [{kind, rows, bars: [{item, left, width, row}]}], breaks, start, end}`; left and width are shares.
 */
export function layout(items, now) {
  const scale = scaleOf(items, now);
  const lanes = LANES.map((kind) => {
    const ends = [];
    const bars = items
      .filter((item) => item.kind === kind)
      .sort((one, two) => one.start - two.start)
      .map((item) => {
        const left = scale.place(item.start);
        const width = Math.max(0, scale.place(endOf(item, now)) - left);
        let row = ends.findIndex((end) => end <= left);
        if (row < 0) row = ends.length < ROWS ? ends.length : ROWS - 1;
        ends[row] = Math.max(ends[row] ?? 0, left + width);
        return { item, left, width, row };
      });
    return { kind, rows: Math.max(1, ends.length), bars };
  });
  const shown = items.filter((item) => LANES.includes(item.kind));
  return {
    lanes,
    breaks: scale.breaks,
    start: Math.min(now, ...shown.map((item) => item.start)),
    end: Math.max(0, ...shown.map((item) => endOf(item, now))),
  };
}

/** How long an item took, or has taken so far. For a prompt: how long it waited. */
export function lengthOf(item, now) {
  return endOf(item, now) - item.start;
}

/** As a list: a prompt and the turn that took it are one moment, `{item, turn}`, at the time of the turn. */
export function momentsOf(items) {
  const turns = new Map(
    items.filter((item) => item.kind === "turn" && item.messageId).map((item) => [item.messageId, item]),
  );
  const taken = new Set();
  const moments = [];
  for (const item of items) {
    if (item.kind !== "prompt") continue;
    const turn = turns.get(item.messageId) ?? null;
    taken.add(turn);
    moments.push({ item, turn, at: turn?.start ?? item.start });
  }
  for (const item of items) {
    if (item.kind === "prompt" || !LANES.includes(item.kind) || taken.has(item)) continue;
    moments.push({ item, turn: null, at: item.start });
  }
  const rank = ({ item }) => LANES.indexOf(item.kind);
  return moments.sort((one, two) => one.at - two.at || rank(one) - rank(two));
}
