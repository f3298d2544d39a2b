// Formulas in LaTeX as a tree for MathML. What is not known here makes the whole formula stay text. Pure; bounded
// in length, depth and number of parts.
//
// Nodes: {tag, attributes?, children} | {tag, attributes?, text}

import { ACCENTS, BIG, DELIMITERS, FUNCTIONS, LETTERS, OPERATORS, SPACES, STYLES } from "./math_symbols.js";

export const LONGEST_FORMULA = 2000;
const DEEPEST = 24;
const MATRICES = { matrix: ["", ""], pmatrix: ["(", ")"], bmatrix: ["[", "]"], Bmatrix: ["{", "}"],
  vmatrix: ["|", "|"], Vmatrix: ["‖", "‖"], cases: ["{", ""], aligned: ["", ""], align: ["", ""],
  "align*": ["", ""], array: ["", ""], gathered: ["", ""], smallmatrix: ["", ""] };

class Unknown extends Error {}

/** The MathML of a formula; null if something of it is not known here. */
export function parseMath(source, display = false) {
  if (source.length > LONGEST_FORMULA || !source.trim()) return null;
  try {
    const reader = new Reader(source, display);
    const children = reader.row();
    if (!reader.done) return null;
    return { tag: "math", attributes: display ? { display: "block" } : {}, children };
  } catch (error) {
    if (error instanceof Unknown) return null;
    throw error;
  }
}

const text = (tag, value, attributes) => ({ tag, attributes, text: value });
const node = (tag, children, attributes) => ({ tag, attributes, children });
const row = (children) => (children.length === 1 ? children[0] : node("mrow", children));
const own = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);

class Reader {
  constructor(source, display) {
    this.tokens = source.match(/\\(?:[A-Za-z]+\*?|[\s\S])|\d+(?:[.,]\d+)*|\s+|[\s\S]/gu) ?? [];
    this.at = 0;
    this.depth = 0;
    this.display = display;
  }

  get done() {
    this.#spaces();
    return this.at >= this.tokens.length;
  }

  get next() {
    this.#spaces();
    return this.tokens[this.at];
  }

  #spaces() {
    while (this.at < this.tokens.length && !this.tokens[this.at].trim()) this.at += 1;
  }

  take() {
    const token = this.next;
    if (token === undefined) throw new Unknown();
    this.at += 1;
    return token;
  }

  expect(token) {
    if (this.take() !== token) throw new Unknown();
  }

  /** Parts up to one of `ends`, which is not taken. */
  row(ends = []) {
    this.depth += 1;
    if (this.depth > DEEPEST) throw new Unknown();
    const parts = [];
    for (let token = this.next; token !== undefined && !ends.includes(token); token = this.next) {
      if (token === "}" || token === "&" || token === "\\\\" || token === "\\right" || token === "\\end") {
        throw new Unknown();
      }
      const part = this.scripted();
      if (part) parts.push(part);
    }
    this.depth -= 1;
    return parts;
  }

  /** A part with what stands above and below it. */
  scripted() {
    let base = this.part();
    let [below, above] = [null, null];
    let limits = base?.limits && this.display;
    for (let token = this.next; ; token = this.next) {
      if (token === "\\limits" || token === "\\nolimits") {
        limits = token === "\\limits";
        this.at += 1;
      } else if (token === "_" && !below) {
        this.at += 1;
        below = this.argument();
      } else if (token === "^" && !above) {
        this.at += 1;
        above = this.argument();
      } else if (token === "'" && !above) {
        let primes = "";
        for (; this.next === "'"; this.at += 1) primes += "′";
        above = text("mo", primes);
      } else break;
    }
    if (!below && !above) return base;
    base ??= node("mrow", []);
    const tag = limits ? ["munder", "mover", "munderover"] : ["msub", "msup", "msubsup"];
    if (below && above) return node(tag[2], [base, below, above]);
    return below ? node(tag[0], [base, below]) : node(tag[1], [base, above]);
  }

  argument() {
    if (this.next !== "{") {
      const token = this.next;
      if (token !== undefined && /^\d\d/.test(token)) { // x^12 is x^1 2
        this.tokens[this.at] = token.slice(1);
        return text("mn", token[0]);
      }
      const part = this.part();
      if (!part) throw new Unknown();
      return part;
    }
    this.at += 1;
    const parts = this.row(["}"]);
    this.expect("}");
    return row(parts);
  }

  /** The letters between braces. */
  word() {
    this.expect("{");
    let word = "";
    for (let depth = 0; ; this.at += 1) {
      const token = this.tokens[this.at];
      if (token === undefined) throw new Unknown();
      if (token === "{") depth += 1;
      if (token === "}" && depth === 0) break;
      if (token === "}") depth -= 1;
      word += /^\\[^A-Za-z]/.test(token) ? token.slice(1) : token;
    }
    this.at += 1;
    return word;
  }

  part() {
    const token = this.take();
    if (token === "{") {
      const parts = this.row(["}"]);
      this.expect("}");
      return row(parts);
    }
    if (token === "~") return node("mspace", [], { width: "0.33em" });
    if (/^\d/.test(token)) return text("mn", token);
    if (token.startsWith("\\")) return this.command(token.slice(1));
    if (token === "^" || token === "_") {
      this.at -= 1;
      return node("mrow", []);
    }
    if (/^\p{L}$/u.test(token)) return text("mi", token);
    if (token === "$" || token === "#" || token === "%" || token === "`" || token === '"') throw new Unknown();
    return text("mo", token === "-" ? "−" : token === "*" ? "∗" : token,
      /^[()[\]|]$/.test(token) ? { stretchy: "false" } : undefined);
  }

  command(name) {
    const letter = own(LETTERS, name);
    if (letter) return text("mi", letter);
    const operator = own(OPERATORS, name);
    if (operator) return text("mo", operator);
    const big = own(BIG, name);
    if (big) return { ...text("mo", big, { largeop: "true" }), limits: !"∫∬∭∮".includes(big) };
    const made = own(FUNCTIONS, name);
    if (made) {
      const spaces = { form: "prefix", lspace: "0.17em", rspace: "0.17em" };
      return { ...text("mo", made, spaces), limits: /^(?:lim|max|min|sup|inf|arg)/.test(made) };
    }
    const space = own(SPACES, name);
    if (space !== undefined) return node("mspace", [], { width: space });
    const accent = own(ACCENTS, name);
    if (accent) return this.accent(name, accent);
    const style = own(STYLES, name);
    if (style) return this.styled(style);
    return this.structure(name);
  }

  accent(name, sign) {
    const under = name.startsWith("under");
    const base = this.argument();
    const mark = text("mo", sign, { stretchy: String(/line|brace|wide|over|under/.test(name)) });
    return { ...node(under ? "munder" : "mover", [base, mark], { [under ? "accentunder" : "accent"]: "true" }),
      limits: /brace/.test(name) };
  }

  /** Letters in another style, of which Unicode has its own: ℝ, 𝐱, 𝒜. */
  styled([upper, lower, digits, exceptions]) {
    const letters = this.next === "{" ? this.word().trim() : this.take();
    if (!/^[A-Za-z0-9 ]+$/.test(letters)) throw new Unknown();
    const shown = [...letters].map((each) => {
      const found = own(exceptions ?? {}, each);
      if (found) return found;
      const start = /[A-Z]/.test(each) ? upper : /[a-z]/.test(each) ? lower : digits;
      if (!start || each === " ") return each;
      return String.fromCodePoint(start + each.charCodeAt(0) - (/[A-Z]/.test(each) ? 65 : /[a-z]/.test(each) ? 97 : 48));
    }).join("");
    return text("mi", shown, { mathvariant: "normal" });
  }

  structure(name) {
    switch (name) {
      case "frac": case "dfrac": case "tfrac": case "cfrac": return node("mfrac", [this.argument(), this.argument()]);
      case "binom": case "dbinom": case "tbinom":
        return row([text("mo", "("), node("mfrac", [this.argument(), this.argument()], { linethickness: "0" }),
          text("mo", ")")]);
      case "sqrt": return this.root();
      case "text": case "textrm": case "textit": case "textbf": case "mbox": return text("mtext", this.word());
      case "operatorname": case "operatorname*": case "mathrm": case "mathsf": case "mathtt":
        return text("mi", this.next === "{" ? this.word() : this.take(), { mathvariant: "normal" });
      case "mathit": case "displaystyle": case "textstyle": case "left.": case "limits":
        return name === "mathit" ? this.argument() : null;
      case "left": return this.between();
      case "big": case "Big": case "bigg": case "Bigg": case "bigl": case "bigr": case "Bigl": case "Bigr":
        return text("mo", this.delimiter(), { stretchy: "false" });
      case "middle": return text("mo", this.delimiter());
      case "overset": case "stackrel": { const above = this.argument(); return node("mover", [this.argument(), above]); }
      case "underset": { const below = this.argument(); return node("munder", [this.argument(), below]); }
      case "begin": return this.matrix();
      case "pmod": return row([text("mo", "("), text("mi", "mod"), node("mspace", [], { width: "0.3em" }),
        this.argument(), text("mo", ")")]);
      case "boxed": return node("mrow", [this.argument()]);
      case "not": return text("mo", `${this.take() === "=" ? "≠" : this.#unknown()}`);
      case "{": case "}": case "|": return text("mo", name === "|" ? "‖" : name, { stretchy: "false" });
      case "%": case "$": case "#": case "&": case "_": return text("mi", name);
      case " ": return node("mspace", [], { width: "0.25em" });
      default: return this.#unknown();
    }
  }

  #unknown() {
    throw new Unknown();
  }

  root() {
    if (this.next !== "[") return node("msqrt", [this.argument()]);
    this.at += 1;
    const index = row(this.row(["]"]));
    this.expect("]");
    return node("mroot", [this.argument(), index]);
  }

  delimiter() {
    const token = this.take();
    const found = token.startsWith("\\") ? own(DELIMITERS, token.slice(1)) : own(DELIMITERS, token);
    if (found === undefined) throw new Unknown();
    return found;
  }

  between() {
    const left = this.delimiter();
    const parts = this.row(["\\right"]);
    this.expect("\\right");
    const right = this.delimiter();
    const fence = (sign) => (sign ? [text("mo", sign, { stretchy: "true" })] : []);
    return node("mrow", [...fence(left), ...parts, ...fence(right)]);
  }

  matrix() {
    const name = this.word();
    const fences = own(MATRICES, name);
    if (!fences) throw new Unknown();
    if (name === "array") this.word();
    const rows = [[]];
    for (;;) {
      rows.at(-1).push(node("mtd", this.row(["&", "\\\\", "\\end"])));
      const end = this.take();
      if (end === "\\\\") rows.push([]);
      else if (end === "\\end") break;
    }
    if (this.word() !== name) throw new Unknown();
    if (rows.length > 1 && rows.at(-1).every(({ children }) => !children.length)) rows.pop();
    const left = /^(?:cases|align|aligned|align\*)$/.test(name) ? { columnalign: "left" } : undefined;
    const table = node("mtable", rows.map((cells) => node("mtr", cells)), left);
    const [open, close] = fences.map((sign) => (sign ? [text("mo", sign, { stretchy: "true" })] : []));
    return node("mrow", [...open, table, ...close]);
  }
}
