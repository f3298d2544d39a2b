// A terminal: its command, its output in colours, and how it ended.

import { h, replace, setText, textNode } from "../../dom.js";
import { Screen } from "../../ansi.js";
import { safeLine, safeText } from "../../text_safety.js";
import { bytes, counted } from "../../words.js";
import { copyButton } from "./copy_button.js";

/** Lines and characters that are shown, from the end. */
const MOST_LINES = 2000;
const MOST = 400_000;
/** Terminals with longer lines get more room where there is more. */
const NARROW = 86;

export class TerminalView {
  #output = h("pre",
    { class: "term-text", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Output" });
  #command = h("code", { class: "term-command" });
  #status = h("span", { class: "term-status" });
  #cut = h("p", { class: "term-cut", hidden: true });
  element = h("div", { class: "term" });
  #screen = new Screen();
  #fed = 0;
  #generation = null;
  #skipped = 0;
  #lines = [];
  #terminal = null;

  constructor() {
    const copy = copyButton(() => this.#terminal?.output ?? "", "Copy the output");
    const bar = h("div", { class: "term-bar" }, this.#command, this.#status, copy);
    this.element.append(bar, this.#cut, this.#output);
  }

  set(terminal) {
    this.#terminal = terminal;
    if (!terminal) {
      setText(this.#status, "The agent sent no output of this terminal.");
      return;
    }
    setText(this.#command, safeLine(terminal.command ?? "", 300));
    setText(this.#status, endOf(terminal));
    this.element.dataset.ended = terminal.exited ? (terminal.exitCode === 0 ? "well" : "badly") : "no";
    this.#feed(terminal);
  }

  #feed(terminal) {
    const { output } = terminal;
    if (terminal.generation !== this.#generation) this.#begin(terminal.generation);
    if (this.#fed === 0 && output.length > MOST) {
      this.#skipped = output.indexOf("\n", output.length - MOST) + 1 || output.length - MOST;
      this.#fed = this.#skipped;
    }
    if (output.length === this.#fed) return;
    const follows = this.#output.scrollHeight - this.#output.scrollTop - this.#output.clientHeight < 24;
    const before = this.#screen.lines.length;
    this.#screen.feed(output.slice(this.#fed));
    this.#fed = output.length;
    this.#draw(before);
    if (follows) this.#output.scrollTop = this.#output.scrollHeight;
  }

  #begin(generation) {
    this.#generation = generation;
    this.#screen = new Screen();
    this.#fed = 0;
    this.#skipped = 0;
    this.#lines = [];
    replace(this.#output);
  }

  #draw(before) {
    const { lines, last } = this.#screen;
    this.#lines.pop()?.remove();
    const from = Math.max(before, lines.length - MOST_LINES);
    for (const line of lines.slice(from)) this.#add(line, "\n");
    this.#add(last, "");
    while (this.#lines.length > MOST_LINES) this.#lines.shift().remove();
    if (lines.length > 4 * MOST_LINES) {
      // Lines that are no longer drawn are dropped; the session has them.
      this.#skipped += lines.length - MOST_LINES;
      lines.splice(0, lines.length - MOST_LINES);
    }
    const hidden = lines.length + 1 - this.#lines.length;
    this.#cut.hidden = !hidden && !this.#skipped;
    const size = bytes(this.#terminal.output.length);
    const shown = counted(this.#lines.length, "line");
    setText(this.#cut, `The last ${shown} of ${size}. Copy includes all of it.`);
  }

  #add(spans, end) {
    const line = h("span", null, spans.map(drawSpan), end);
    if (spans.reduce((sum, { text }) => sum + text.length, 0) > NARROW) this.element.classList.add("wide");
    this.#lines.push(line);
    this.#output.append(line);
  }
}

function endOf(terminal) {
  if (!terminal.exited) return "running";
  if (terminal.signal) return `ended by ${safeLine(terminal.signal, 24)}`;
  return terminal.exitCode === null ? "ended" : `exit ${terminal.exitCode}`;
}

function drawSpan({ text, style }) {
  const shown = safeText(text);
  const { fg, bg } = style.inverse ? { fg: style.bg ?? "bg", bg: style.fg ?? "fg" } : style;
  const classes = ["bold", "dim", "italic", "underline", "strike", "hidden"].filter((name) => style[name]);
  if (!classes.length && fg === undefined && bg === undefined) return textNode(shown);
  const span = h("span", { class: classes.map((name) => `t-${name}`) }, shown);
  // Black is shown as grey, which is readable on the dark background but not on a bright one.
  if (fg !== undefined) span.style.color = colour(fg === 0 && bg !== undefined ? "bg" : fg);
  if (bg !== undefined) span.style.backgroundColor = colour(bg);
  return span;
}

function colour(given) {
  if (given === "fg") return "var(--term-ink)";
  if (given === "bg") return "var(--term)";
  return typeof given === "number" ? `var(--ansi-${given})` : given;
}
