// How turns ended that nobody here saw: no replay says it, a timeline does.

/** Items with the ends of turns behind the last item of each: filled in where told, none of an open one. */
export function placed(items, turns, byKey) {
  const found = [];
  let at = 0;
  turns.forEach(({ id, index, start, end, status, cause, unanswered }, which) => {
    const next = turns[which + 1]?.index ?? items.length;
    for (; at < next; at += 1) found.push(items[at]);
    if (next <= index || !end) return;
    const last = found.at(-1);
    if (last?.kind === "end") {
      Object.assign(last, { since: last.since ?? start, at: last.at ?? end, unanswered, version: last.version + 1 });
    }
    else if (which < turns.length - 1 || next === items.length) {
      const item = { kind: "end", id: `recalled/${id}`, key: `recalled/${id}`, version: 0, stopReason: status,
        error: null, cause, unanswered, usage: null, at: end, since: start };
      byKey.set(item.key, item);
      found.push(item);
    }
  });
  for (; at < items.length; at += 1) found.push(items[at]);
  return found;
}

/** The questions of a timeline that ended without an answer in a turn. */
export function unansweredIn({ start, end }, timeline) {
  return timeline.filter((item) => item.kind === "question" && item.status === "expired" && item.end
    && item.start >= start && end && item.end <= end).map(({ title }) => ({ title }));
}
