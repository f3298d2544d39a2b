// Text made visible, as transcripts/visible.py does it: it turns no line around and hides nothing in what
// has no width. A character that would change how others are seen is named instead. Pure.

const ESCAPES = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x1b\\|\x07)?|\x1b[^\n]?/g;
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f]|\p{Surrogate}/gu;
const BREAKS = /[\x85\u2028\u2029]/g;
// Joiners belong to emoji and to many scripts; beside ASCII they only hide.
const HIDDEN = new RegExp(
  "[\\u061c\\u180e\\u200b\\u200e\\u200f\\u202a-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb" +
    "\\u{1bca0}-\\u{1bca3}\\u{e0000}-\\u{e0fff}]" +
    "|(?<=[\\0-\\x7f])[\\u200c\\u200d]|[\\u200c\\u200d](?=[\\0-\\x7f])",
  "gu",
);
const PLAIN = /^[\x20-\x7e]*$/;

export function visible(text) {
  if (PLAIN.test(text)) return text;
  let shown = text.replace(ESCAPES, "");
  if (shown.includes("\r")) {
    shown = shown
      .split("\n")
      .map((line) => line.replace(/\r+$/, "").split("\r").at(-1))
      .join("\n");
  }
  shown = shown.replace(CONTROLS, "").replace(BREAKS, "\n");
  return shown.replace(
    HIDDEN,
    (hidden) => `⟨U+${hidden.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

/** The same on one line, and not longer than a line should be. */
export function visibleLine(text, limit = 400) {
  const line = visible(String(text ?? "").slice(0, 4 * limit))
    .split(/\s+/)
    .filter(Boolean)
    .join(" ");
  const letters = line.length <= limit ? null : [...line];
  return letters === null || letters.length <= limit ? line : letters.slice(0, limit - 1).join("") + "…";
}
