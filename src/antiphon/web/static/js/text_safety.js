// Text safety: the twin of text_safety.py, which explains it. tests/text/vectors.json has the cases for both.
// Pure.

/** Hidden characters in a row that are named; the rest of a longer row is counted. */
const NAMED = 4;
/** Combining marks in a row that are shown. */
const MARKS = 4;

const PLANE_ENDS = Array.from({ length: 16 }, (_, plane) => {
  const end = (((plane + 1) << 16) | 0xfffe).toString(16);
  return `\\u{${end}}\\u{${end.slice(0, -1)}f}`;
}).join("");
const HIDDEN =
  "\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f" +
  "\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f" +
  "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f" +
  "\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb" +
  "\\ufdd0-\\ufdef\\ufffe\\uffff\\ud800-\\udfff" +
  "\\u{1bca0}-\\u{1bca3}\\u{1d159}\\u{1d173}-\\u{1d17a}" +
  "\\u{e0000}-\\u{e0fff}" +
  PLANE_ENDS;
const EMOJI =
  "[\\xa9\\xae\\u203c\\u2049\\u2122\\u2139\\u2190-\\u21ff\\u2300-\\u23ff\\u24c2\\u25a0-\\u27bf\\u2934\\u2935" +
  "\\u2b05-\\u2b55\\u3030\\u303d\\u3297\\u3299\\u{1f000}-\\u{1faff}]";
const JOINING =
  "[\\u0590-\\u061b\\u061d-\\u0dff\\u0f00-\\u109f\\u1700-\\u17b3\\u17b6-\\u180a\\u1810-\\u18af\\u1900-\\u1cff" +
  "\\ua800-\\uabff\\ufb1d-\\ufdcf\\ufe70-\\ufefc\\u{10a00}-\\u{11fff}\\u{1e900}-\\u{1e95f}]";
const IDEOGRAPH = "[\\u3000-\\u303f\\u3400-\\u9fff\\uf900-\\ufaff\\uff00-\\uff60\\u{20000}-\\u{3fffd}]";
const TAGGED_FLAG =
  "\\u{1f3f4}\\u{e0067}\\u{e0062}(?:\\u{e0065}\\u{e006e}\\u{e0067}|\\u{e0073}\\u{e0063}\\u{e0074}" +
  "|\\u{e0077}\\u{e006c}\\u{e0073})\\u{e007f}";
const JOINED = `\\u200d${EMOJI}[\\ufe0e\\ufe0f]?`;
const KEPT =
  `${EMOJI}(?:[\\ufe00-\\ufe0f](?:${JOINED})*|(?:${JOINED})+)` +
  "|[0-9#*]\\ufe0f(?=\\u20e3)" +
  `|${JOINING}[\\u200c\\u200d](?![!-~\\u200c\\u200d])` +
  `|${IDEOGRAPH}[\\ufe00-\\ufe02\\u{e0100}-\\u{e01ef}]` +
  "|[\\u1820-\\u18aa][\\u180b-\\u180d\\u180f]" +
  `|${TAGGED_FLAG}`;
const SHOWN = new RegExp(`(${KEPT})|\\r\\n|(?:(?!\\r\\n)[${HIDDEN}])+`, "gu");
const ANY_HIDDEN = new RegExp(`[${HIDDEN}]`, "u");
/** The rest of an emoji that was cut. */
const HIDDEN_END = new RegExp(`[${HIDDEN}]+$`, "u");
const MARKED = new RegExp(`([\\p{Mn}\\p{Me}]{${MARKS}})([\\p{Mn}\\p{Me}]+)`, "gu");
const PLAIN = /^[\x20-\x7e]*$/;

const ESCAPES = new RegExp(
  "(?:\\x1b\\[|\\x9b)[0-?]*[ -/]*[@-~]" + // CSI: colours, cursor movement
    // OSC and other strings: titles, links, the clipboard
    "|(?:\\x1b[\\]PX^_]|[\\x90\\x98\\x9d\\x9e\\x9f])[^\\x07\\x1b\\x9c\\n]*(?:\\x07|\\x9c|\\x1b\\\\)?" +
    "|\\x1b(?:[ -/]+[0-~]|[0-OQ-WYZ\\\\`-~])",
  "g",
);
const SILENT = /[\0\x07]/g;

/** Name every hidden character, turn CR LF into LF, and count surplus combining marks. */
export function safeText(text) {
  const given = String(text ?? "");
  if (PLAIN.test(given)) return given;
  const shown = ANY_HIDDEN.test(given) ? given.replace(SHOWN, named) : given;
  return shown.replace(MARKED, (_, kept, rest) => `${kept}⟨${[...rest].length} more marks⟩`);
}

function named(found, kept) {
  if (kept !== undefined) return found;
  if (found === "\r\n") return "\n";
  const hidden = [...found];
  const names = hidden
    .slice(0, NAMED)
    .map((each) => `⟨U+${each.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`)
    .join("");
  return hidden.length <= NAMED ? names : `${names}⟨${hidden.length - NAMED} more hidden⟩`;
}

/** `safeText` on one line, with single spaces, cut to `limit` characters. Reads 4 × `limit` at most. */
export function safeLine(text, limit = 400) {
  const given = String(text ?? "");
  const read = cut(given, 4 * limit);
  const line = safeText(read).split(/\s+/).filter(Boolean).join(" ");
  const whole = read.length === given.length && cut(line, limit).length === line.length;
  return whole ? line : cut(line, limit - 1).replace(HIDDEN_END, "") + "…";
}

/** The first characters of a text; a pair of surrogates is one. */
function cut(text, count) {
  if (text.length <= count) return text;
  let at = 0;
  for (let left = count; left > 0 && at < text.length; left -= 1) at += text.codePointAt(at) > 0xffff ? 2 : 1;
  return text.slice(0, at);
}

/**
 * `safeText` of what a terminal would show: without escape sequences and overwritten lines. It drops
 * characters, so it is not for text that a user approves.
 */
export function printedText(text) {
  const given = String(text ?? "");
  if (PLAIN.test(given)) return given;
  let left = given.replace(ESCAPES, "").replace(SILENT, "");
  if (left.includes("\r")) {
    left = left
      .split("\n")
      .map((line) => line.replace(/\r+$/, "").split("\r").at(-1))
      .join("\n");
  }
  return safeText(left);
}
