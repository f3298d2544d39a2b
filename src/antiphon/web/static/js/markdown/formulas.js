// Where formulas are in a text: $…$, $$…$$, \\(…\\) and \\[…\\]. Prices and shell variables are none. Pure.

import { LONGEST_FORMULA, parseMath } from "./math.js";

const OPENERS = [["$$", "$$", true], ["\\[", "\\]", true], ["\\(", "\\)", false], ["$", "$", false]];
const SIGNS = /[\\^_{}=<>+]/;

/** The formula at a place of a text: {node, length}; null if there is none. One that is not understood is its
 * source. */
export function formulaAt(text, at) {
  for (const [opener, closer, display] of OPENERS) {
    if (!text.startsWith(opener, at)) continue;
    const from = at + opener.length;
    const near = text.slice(from, from + LONGEST_FORMULA + 2);
    const end = endOf(near, closer);
    if (end < 0) return null;
    const source = near.slice(0, end);
    const whole = text.slice(at, from + end + closer.length);
    if (opener === "$" && !looksMeant(source, text[at - 1], near[end + 1])) return null;
    if (/\n[ \t]*\n/.test(source)) return null;
    const tree = parseMath(source, display);
    if (tree) return { node: { type: "math", tree, source, display }, length: whole.length };
    return opener === "$" || !source.trim() ? null : { node: { type: "text", text: whole }, length: whole.length };
  }
  return null;
}

function endOf(text, closer) {
  for (let at = text.indexOf(closer); at >= 0; at = text.indexOf(closer, at + 1)) {
    let slashes = 0;
    while (text[at - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return at;
  }
  return -1;
}

/** Whether what is between two dollar signs is meant as a formula: "$5 and $10" is not. */
function looksMeant(source, before, after) {
  if (!source || /^\s|\s$/.test(source)) return false;
  if (/[\p{L}\p{N}$]/u.test(before ?? "") || /[\p{L}\p{N}$]/u.test(after ?? "")) return false;
  return SIGNS.test(source) || (!/^\d|[A-Za-z]{2}|\s/.test(source));
}

/** Read a formula with lines of its own: {source, lines}; null if none begins at this line.
 * `lineAt` gives the line so many lines ahead; `stopOf` tells how many lines ahead the next one is that has a
 * closer, is blank or is missing. */
export function formulaBlock(lineAt, stopOf) {
  const first = lineAt(0);
  const found = /^ {0,3}(\$\$|\\\[)/.exec(first ?? "");
  if (!found) return null;
  const closer = found[1] === "$$" ? "$$" : "\\]";
  const opened = first.slice(found[0].length).trimEnd();
  const count = opened.includes(closer) ? 0 : stopOf(closer);
  if (count > LONGEST_FORMULA) return null;
  const last = (count === 0 ? opened : lineAt(count) ?? "").trimEnd();
  if (!last.endsWith(closer) || last.indexOf(closer) < last.length - closer.length) return null;
  const lines = [opened];
  for (let ahead = 1; ahead < count; ahead += 1) lines.push(lineAt(ahead));
  if (count > 0) lines.push(last);
  const source = lines.join("\n");
  if (source.length > LONGEST_FORMULA) return null;
  return { source: source.slice(0, -closer.length).trim(), lines: count + 1 };
}
