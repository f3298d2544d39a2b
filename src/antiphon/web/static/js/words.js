// Times, durations, sizes, paths and names as text. Pure: the time is an argument.

import { safeLine } from "./text_safety.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How long ago: "now", "5 min", "3 h", "yesterday", "4 d", then the date. */
export function ago(at, now) {
  const time = typeof at === "number" ? at : Date.parse(at);
  if (!Number.isFinite(time)) return "";
  const gone = Math.max(0, now - time);
  if (gone < MINUTE) return "now";
  if (gone < HOUR) return `${Math.floor(gone / MINUTE)} min`;
  if (gone < DAY) return `${Math.floor(gone / HOUR)} h`;
  if (gone < 2 * DAY) return "yesterday";
  if (gone < 7 * DAY) return `${Math.floor(gone / DAY)} d`;
  const date = new Date(time);
  const sameYear = date.getFullYear() === new Date(now).getFullYear();
  return date.toLocaleDateString(undefined, {
    day: "numeric",
    month: "short",
    year: sameYear ? undefined : "numeric",
  });
}

/** How long something took: "80 ms", "4.2 s", "38 s", "3 min 5 s", "2 h 10 min". */
export function lasting(ms) {
  if (!Number.isFinite(ms) || ms < 0) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
}

export function clock(at) {
  return new Date(at).toLocaleTimeString(undefined, {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
}

export function hour(at) {
  return new Date(at).toLocaleTimeString(undefined, { hour: "numeric", minute: "2-digit" });
}

/** 950, 1.2k, 48k, 1.5M */
export function many(number) {
  if (number < 1000) return String(number);
  const [value, unit] = number < 999_500 ? [number / 1000, "k"] : [number / 1_000_000, "M"];
  return `${value < 10 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)}${unit}`;
}

export function bytes(size) {
  if (size < 1024) return `${size} B`;
  if (size < 1024 * 1024) return `${Math.round(size / 1024)} KB`;
  return `${(size / 1024 / 1024).toFixed(1)} MB`;
}

export function cost({ amount, currency }) {
  const digits = amount !== 0 && Math.abs(amount) < 0.1 ? 4 : 2;
  try {
    return new Intl.NumberFormat(undefined, {
      style: "currency",
      currency,
      minimumFractionDigits: 2,
      maximumFractionDigits: digits,
    }).format(amount);
  } catch {
    return `${amount.toFixed(digits)} ${safeLine(String(currency), 8)}`;
  }
}

/** One client, 2 clients. */
export function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** A path relative to a folder, or whole if it is elsewhere. */
export function within(path, folder) {
  const root = folder && folder !== "/" ? folder.replace(/\/?$/, "/") : null;
  return root && path.startsWith(root) ? path.slice(root.length) : path;
}

/** The last two parts of a path: "…/site/docs". */
export function shortPath(path) {
  const parts = String(path ?? "")
    .split(/[\\/]/)
    .filter(Boolean);
  if (parts.length <= 2) return safeLine(String(path ?? ""), 60);
  return safeLine(`…/${parts.slice(-2).join("/")}`, 60);
}

/** The initials of a name, at most two letters. */
export function initials(name) {
  const words = safeLine(String(name ?? ""), 64)
    .split(/[\s._@-]+/)
    .filter(Boolean);
  const letters = words.length > 1 ? [words[0], words.at(-1)] : words;
  const first = letters.map((word) => [...word][0]);
  if (first.length === 1) return [...words[0]].slice(0, 2).join("").toUpperCase();
  return first.join("").toUpperCase() || "?";
}
