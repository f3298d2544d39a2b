// Code as pieces of text, each of a kind: comments, strings, keywords. Pure; time grows with the length alone.

/** Longer texts, and those with more pieces, stay plain: every piece is an element. */
export const LONGEST = 40_000;
const MOST_PIECES = 6000;

const compiled = new WeakMap();

/** @returns {{kind: string|null, text: string}[]} the whole text, in order */
export function highlight(text, language) {
  if (!language || text.length > LONGEST) return [{ kind: null, text }];
  const pieces = [];
  const pattern = patternOf(language);
  let plain = 0;
  pattern.lastIndex = 0;
  for (let found = pattern.exec(text); found; found = pattern.exec(text)) {
    if (!found[0]) {
      pattern.lastIndex += 1;
      continue;
    }
    const kind = kindOf(found, language, text);
    if (kind === null) continue;
    if (found.index > plain) pieces.push({ kind: null, text: text.slice(plain, found.index) });
    pieces.push({ kind, text: found[0] });
    plain = found.index + found[0].length;
    if (pieces.length >= MOST_PIECES) break;
  }
  if (plain < text.length) pieces.push({ kind: null, text: text.slice(plain) });
  return pieces;
}

function patternOf(language) {
  let pattern = compiled.get(language);
  if (!pattern) {
    pattern = new RegExp(language.rules.map(([, source]) => `(${source})`).join("|"), "gm");
    compiled.set(language, pattern);
  }
  return pattern;
}

function kindOf(found, language, text) {
  const { rules } = language;
  for (let at = 0; at < rules.length; at += 1) {
    if (found[at + 1] === undefined) continue;
    const [kind] = rules[at];
    if (kind === "plain") return null;
    if (kind === "string" && language.keys && isKey(text, found.index + found[0].length)) return "property";
    return kind === "word" ? kindOfWord(found, language, text) : kind;
  }
  return null;
}

/** Whether a colon follows, behind some spaces. */
function isKey(text, end) {
  return /^[ \t]*:/.test(text.slice(end, end + 20));
}

function kindOfWord(found, { keywords, types, values, anyCase }, text) {
  const word = anyCase ? found[0].toLowerCase() : found[0];
  if (keywords.has(word)) return "keyword";
  if (values.has(word)) return "value";
  if (types.has(word)) return "type";
  if (text[found.index + found[0].length] === "(") return "function";
  return /^[A-Z][a-z]/.test(word) ? "type" : null;
}

/** Highlighted text line by line: for each line its pieces. */
export function highlightLines(lines, language) {
  const all = [[]];
  for (const { kind, text } of highlight(lines.join("\n"), language)) {
    text.split("\n").forEach((part, at) => {
      if (at > 0) all.push([]);
      if (part) all.at(-1).push({ kind, text: part });
    });
  }
  return all;
}

/** The pieces of a part of a line, from one place to another. */
export function cutPieces(pieces, from, to) {
  const cut = [];
  let at = 0;
  for (const { kind, text } of pieces) {
    const part = text.slice(Math.max(0, from - at), Math.max(0, to - at));
    if (part) cut.push({ kind, text: part });
    at += text.length;
  }
  return cut;
}
