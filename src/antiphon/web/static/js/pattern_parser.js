// Reading the pattern of a form field into the steps that matching it takes: the twin of
// engine/pattern_parser.py and pattern_sets.py. ECMA-262 with the `u` flag, without lookarounds and references
// back, which cannot be matched in bounded time. Pure.

/** How many steps a pattern may have once its counted parts are written out. */
const STEPS = 2000;
const DEEPEST = 50;

/** A pattern that is malformed, or that cannot be matched in bounded time. */
export class Unsupported extends Error {}

export const TAKE = 0;
export const SPLIT = 1;
export const AT = 2;
export const FOUND = 3;

/** Ranges of code points and tests of them, perhaps turned around. */
export class CharSet {
  constructor(ranges = [], tests = [], { inverted = false, nested = 0 } = {}) {
    this.ranges = ranges;
    this.tests = tests;
    this.inverted = inverted;
    /** Comparisons that the tests may take beyond one each. */
    this.nested = nested;
  }

  /** Comparisons that one question may take. */
  get size() {
    return this.ranges.length + this.tests.length + this.nested;
  }

  has(code) {
    const found =
      this.ranges.some(([low, high]) => low <= code && code <= high) || this.tests.some((test) => test(code));
    return found !== this.inverted;
  }

  or(other) {
    const [one, two] = [this.#upright(), other.#upright()];
    const nested = one.nested + two.nested;
    return new CharSet([...one.ranges, ...two.ranges], [...one.tests, ...two.tests], { nested });
  }

  get not() {
    return new CharSet(this.ranges, this.tests, { inverted: !this.inverted, nested: this.nested });
  }

  #upright() {
    return this.inverted ? new CharSet([], [(code) => this.has(code)], { nested: this.size }) : this;
  }

  /** The only character of a set, which a range needs at both ends. */
  get only() {
    const [range] = this.ranges;
    const single = this.ranges.length === 1 && range[0] === range[1] && !this.tests.length && !this.inverted;
    if (!single) throw new Unsupported("a range between sets");
    return range[0];
  }
}

const oneOf = (...codes) => new CharSet(codes.map((code) => [code, code]));
const range = (low, high) => new CharSet([[low.codePointAt(0), high.codePointAt(0)]]);
const tested = (source) => {
  const pattern = new RegExp(`^${source}$`, "u"); // of one character: it takes no time
  return new CharSet([], [(code) => pattern.test(String.fromCodePoint(code))]);
};

export const WORD = range("0", "9").or(range("A", "Z")).or(range("a", "z")).or(range("_", "_"));
const DIGITS = range("0", "9");
const LINE_ENDS = oneOf(0x0a, 0x0d, 0x2028, 0x2029);
const SPACE = oneOf(0x09, 0x0b, 0x0c, 0x20, 0xa0, 0xfeff).or(LINE_ENDS).or(tested("\\p{Zs}"));
const SETS = { d: DIGITS, D: DIGITS.not, w: WORD, W: WORD.not, s: SPACE, S: SPACE.not };
const CHARS = { t: 0x09, n: 0x0a, r: 0x0d, v: 0x0b, f: 0x0c, 0: 0x00 };
const PLACES = ["^", "$", "\\b", "\\B"];

export function parsePattern(source) {
  const steps = [];
  new Parser(source).read()(steps);
  steps.push({ kind: FOUND });
  return steps;
}

function add(steps, step) {
  if (steps.length > STEPS) throw new Unsupported("the pattern is too large");
  steps.push(step);
  return step;
}

const take = (allowed) => (steps) => add(steps, { kind: TAKE, allowed });
const split = (steps) => add(steps, { kind: SPLIT, one: steps.length + 1, other: 0 });

function either(parts) {
  if (parts.length === 1) return parts[0];
  return (steps) => {
    const ends = [];
    for (const part of parts.slice(0, -1)) {
      const choice = split(steps);
      part(steps);
      ends.push(split(steps));
      choice.other = steps.length;
    }
    parts.at(-1)(steps);
    for (const end of ends) end.one = end.other = steps.length;
  };
}

function repeat(part, least, most) {
  return (steps) => {
    const before = steps.length;
    for (let count = 0; count < least; count += 1) {
      part(steps);
      if (steps.length === before) return; // nothing, however often
    }
    if (most === null) {
      const at = steps.length;
      const choice = split(steps);
      part(steps);
      add(steps, { kind: SPLIT, one: at, other: at });
      choice.other = steps.length;
      return;
    }
    const choices = [];
    for (let count = least; count < most; count += 1) {
      choices.push(split(steps));
      part(steps);
    }
    for (const choice of choices) choice.other = steps.length; // each may be the last
  };
}

class Parser {
  #source;
  #at = 0;
  #depth = 0;

  constructor(source) {
    this.#source = [...source];
  }

  read() {
    const whole = this.#alternatives();
    if (this.#at < this.#source.length) throw new Unsupported("a group is closed that was not opened");
    return whole;
  }

  get #next() {
    return this.#source[this.#at] ?? "";
  }

  #skip(text) {
    const found = [...text].every((char, at) => this.#source[this.#at + at] === char);
    if (found) this.#at += text.length;
    return found;
  }

  /** What stands before the next such character, which is read too. */
  #until(end, what) {
    const found = this.#source.indexOf(end, this.#at);
    if (found < 0) throw new Unsupported(what);
    const text = this.#source.slice(this.#at, found).join("");
    this.#at = found + 1;
    return text;
  }

  #alternatives() {
    this.#depth += 1;
    if (this.#depth > DEEPEST) throw new Unsupported("the pattern is too deep");
    const parts = [this.#terms()];
    while (this.#skip("|")) parts.push(this.#terms());
    this.#depth -= 1;
    return either(parts);
  }

  #terms() {
    const parts = [];
    while (!["", "|", ")"].includes(this.#next)) {
      const place = PLACES.find((each) => this.#skip(each));
      parts.push(place ? (steps) => add(steps, { kind: AT, place }) : this.#quantified(this.#atom()));
    }
    return (steps) => parts.forEach((part) => part(steps));
  }

  #atom() {
    if (this.#skip("(")) return this.#group();
    if (this.#skip("[")) return take(this.#class());
    if (this.#skip("\\")) return take(this.#escape());
    const char = this.#next;
    if ("*+?{".includes(char)) throw new Unsupported(`nothing stands before ${char}`);
    this.#at += 1;
    return take(char === "." ? LINE_ENDS.not : oneOf(char.codePointAt(0)));
  }

  #group() {
    if (this.#skip("?")) {
      const named = this.#next === "<" && !["=", "!"].includes(this.#source[this.#at + 1]);
      if (named) {
        this.#at += 1;
        if (!/^[\p{ID_Start}_]\p{ID_Continue}*$/u.test(this.#until(">", "a group without a name")))
          throw new Unsupported("a group without a name");
      } else if (!this.#skip(":")) throw new Unsupported("a lookaround or a flag inside a pattern");
    }
    const inside = this.#alternatives();
    if (!this.#skip(")")) throw new Unsupported("a group is not closed");
    return inside;
  }

  #quantified(part) {
    const counts = this.#counts();
    if (counts === null) return part;
    this.#skip("?"); // a lazy one finds the same texts
    if (["*", "+", "?", "{"].includes(this.#next)) throw new Unsupported("a quantifier after a quantifier");
    const [least, most] = counts;
    if (most !== null && most < least) throw new Unsupported("a count that ends before it begins");
    return repeat(part, least, most);
  }

  #counts() {
    if (this.#skip("*")) return [0, null];
    if (this.#skip("+")) return [1, null];
    if (this.#skip("?")) return [0, 1];
    if (!this.#skip("{")) return null;
    const counts = /^(\d{1,5})(,(\d{1,5})?)?$/.exec(this.#until("}", "a brace that counts nothing"));
    if (!counts) throw new Unsupported("a brace that counts nothing");
    const [, least, comma, most] = counts;
    if (!comma) return [Number(least), Number(least)];
    return [Number(least), most ? Number(most) : null];
  }

  #class() {
    const inverted = this.#skip("^");
    let made = new CharSet();
    while (!this.#skip("]")) {
      const low = this.#member();
      if (this.#next === "-" && !["", "]"].includes(this.#source[this.#at + 1] ?? "")) {
        this.#at += 1;
        const [first, last] = [low.only, this.#member().only];
        if (first > last) throw new Unsupported("a range that ends before it begins");
        made = made.or(new CharSet([[first, last]]));
      } else made = made.or(low);
    }
    return inverted ? made.not : made;
  }

  #member() {
    if (this.#skip("\\")) {
      if (this.#skip("b")) return oneOf(0x08);
      return this.#skip("-") ? oneOf(0x2d) : this.#escape();
    }
    if (!this.#next) throw new Unsupported("a set is not closed");
    this.#at += 1;
    return oneOf(this.#source[this.#at - 1].codePointAt(0));
  }

  #escape() {
    const char = this.#next;
    this.#at += 1;
    if (char === "p" || char === "P") {
      if (!this.#skip("{")) throw new Unsupported(`a property of characters that is not named after \\${char}`);
      const name = this.#until("}", "a property of characters that is not named");
      if (!/^[LMNPSZC][a-z]?$/.test(name)) throw new Unsupported(`the property ${name} of characters`);
      try {
        return tested(`\\${char}{${name}}`);
      } catch {
        throw new Unsupported(`the property ${name} of characters`);
      }
    }
    if (char === "x") return oneOf(this.#code(2));
    if (char === "u") return oneOf(this.#unicode());
    if (char === "c" && /^[A-Za-z]$/.test(this.#next)) {
      this.#at += 1;
      return oneOf(this.#source[this.#at - 1].codePointAt(0) % 32);
    }
    if (char === "0" && /^\d$/.test(this.#next)) throw new Unsupported("an octal escape");
    if (Object.hasOwn(SETS, char)) return SETS[char];
    if (Object.hasOwn(CHARS, char)) return oneOf(CHARS[char]);
    if (/^[\0-\x7f]$/.test(char) && !/^[A-Za-z0-9]$/.test(char)) return oneOf(char.codePointAt(0));
    throw new Unsupported(`the escape \\${char}`);
  }

  #unicode() {
    if (!this.#skip("{")) return this.#code(4);
    return character(this.#until("}", "an escape that names no character"));
  }

  #code(length) {
    const digits = this.#source.slice(this.#at, this.#at + length).join("");
    this.#at += length;
    if (digits.length < length) throw new Unsupported("an escape that is cut short");
    return character(digits);
  }
}

function character(digits) {
  const code = /^[0-9a-fA-F]{1,6}$/.test(digits) ? Number.parseInt(digits, 16) : Number.NaN;
  const named = code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000);
  if (!named) throw new Unsupported("an escape that names no character");
  return code;
}
