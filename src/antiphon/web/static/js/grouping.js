// Sessions in groups: by the day of their last use, or by their project, which is their folder. Pure.

const DAY = 86_400_000;

export const WAITING = "Waiting for an answer";
export const GROUPINGS = { day: "By day", project: "By project" };

/** The sessions, which are sorted, in groups: `[{name, title?, entries}]`. */
export function grouped(entries, how, now, { shortPath = (path) => path } = {}) {
  const groups = new Map();
  for (const entry of entries) {
    const waits = entry.state === "requires_action";
    const name = waits ? WAITING : how === "project" ? (entry.cwd ?? "") : dayOf(entry.updatedAt, now);
    if (!groups.has(name)) {
      const label = waits || how !== "project" ? name : shortPath(name) || "No folder";
      groups.set(name, { name: label, title: waits || how !== "project" ? null : name, entries: [] });
    }
    groups.get(name).entries.push(entry);
  }
  return [...groups.values()];
}

/** The day of a time, as a heading: today, yesterday, the last seven days, then the month. */
export function dayOf(at, now) {
  const time = Date.parse(at ?? "");
  if (!Number.isFinite(time)) return "Earlier";
  const today = new Date(now).setHours(0, 0, 0, 0);
  if (time >= today) return "Today";
  if (time >= today - DAY) return "Yesterday";
  if (time >= today - 6 * DAY) return "Last seven days";
  return new Date(time).toLocaleDateString(undefined, { month: "long", year: "numeric" });
}
