// The output of a terminal as lines with styles. Escape sequences other than styles are dropped. Pure.

const CSI = "\\x1b\\[[0-?]*[ -/]*[@-~]";
const STRING = "\\x1b[\\]PX^_][^\\x07\\x1b]*(?:\\x1b\\\\|\\x07)"; // titles, links, the clipboard
const TOKEN = new RegExp(
  `\\x1b\\[([0-9;:]*)m|${CSI}|${STRING}?|\\x1b[()*+#%][^\\n]?|\\x1b[^\\n]?|[\\x00-\\x08\\x0a-\\x1f\\x7f]`
    + "|[^\\x00-\\x08\\x0a-\\x1f\\x7f]+",
  "g",
);
const WHOLE = new RegExp(`^(?:${CSI}|${STRING}|\\x1b[^[\\]PX^_])`);
/** Characters of an incomplete escape sequence that are held back. */
const LONGEST = 64;
const BASIC = 16;

/** A screen that is written in pieces. `lines`: the complete lines; `last`: the current line. */
export class Screen {
  lines = [];
  last = [];
  #style = {};
  #rest = "";
  #returned = false;

  feed(text) {
    const whole = this.#rest + text;
    // An incomplete escape sequence is held back for the next piece, unless it is too long.
    const cut = whole.lastIndexOf("\x1b");
    const open = cut >= 0 && whole.length - cut < LONGEST && !WHOLE.test(whole.slice(cut));
    this.#rest = open ? whole.slice(cut) : "";
    const now = open ? whole.slice(0, cut) : whole;
    for (const [token, colours] of now.matchAll(TOKEN)) this.#take(token, colours);
  }

  #take(token, colours) {
    if (colours !== undefined) this.#style = restyled(this.#style, colours);
    else if (token === "\n") {
      this.lines.push(this.last);
      this.last = [];
      this.#returned = false;
    } else if (token === "\r") this.#returned = true;
    else if (token === "\x08") this.#back();
    else if (token[0] >= " " || token[0] === "\t") this.#write(token);
  }

  #write(text) {
    if (this.#returned) {
      this.last = after(this.last, text.length);
      this.#returned = false;
      this.last.unshift({ text, style: this.#style });
      return;
    }
    const end = this.last.at(-1);
    if (end && end.style === this.#style) end.text += text;
    else this.last.push({ text, style: this.#style });
  }

  #back() {
    const end = this.last.at(-1);
    if (!end) return;
    end.text = end.text.slice(0, -1);
    if (!end.text) this.last.pop();
  }
}

/** The rest of a line after `count` characters. */
function after(spans, count) {
  const left = [];
  let gone = count;
  for (const span of spans) {
    if (gone >= span.text.length) gone -= span.text.length;
    else {
      left.push({ ...span, text: span.text.slice(gone) });
      gone = 0;
    }
  }
  return left;
}

/** The style after the codes of one escape sequence (SGR). */
export function restyled(style, given) {
  const codes = given === "" ? [0] : given.split(/[;:]/).map((code) => Number(code || 0));
  let next = { ...style };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 0) next = {};
    else if (code === 38 || code === 48 || code === 58) {
      const [colour, length] = extended(codes, at + 1);
      if (code !== 58) next[code === 38 ? "fg" : "bg"] = colour;
      at += length;
    } else set(next, code);
  }
  return next;
}

const FLAGS = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 8: "hidden", 9: "strike" };
const ENDS = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 28: ["hidden"],
  29: ["strike"], 39: ["fg"], 49: ["bg"] };

function set(style, code) {
  if (FLAGS[code]) style[FLAGS[code]] = true;
  else if (ENDS[code]) for (const name of ENDS[code]) delete style[name];
  else if (code >= 30 && code <= 37) style.fg = code - 30;
  else if (code >= 40 && code <= 47) style.bg = code - 40;
  else if (code >= 90 && code <= 97) style.fg = code - 82;
  else if (code >= 100 && code <= 107) style.bg = code - 92;
}

/** A colour of 256 or of RGB, as a number below 16 or as CSS, and the number of codes that it takes. */
function extended(codes, at) {
  if (codes[at] === 5) return [indexed(codes[at + 1]), 2];
  if (codes[at] === 2) {
    const parts = codes.slice(at + 1, at + 4).map((part) => Math.min(255, part | 0));
    return [parts.length === 3 ? `rgb(${parts.join(" ")})` : undefined, 4];
  }
  return [undefined, 1];
}

function indexed(index) {
  if (!(index >= 0 && index <= 255)) return undefined;
  if (index < BASIC) return index;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const cube = index - 16;
  const step = (value) => (value ? 55 + value * 40 : 0);
  return `rgb(${step(Math.floor(cube / 36))} ${step(Math.floor(cube / 6) % 6)} ${step(cube % 6)})`;
}
