// A tool call as a card: title and status in one line, and its content when opened.

import { h, replace, setLabel, setText } from "../../dom.js";
import { icon } from "../../icons.js";
import { printedText, safeLine, safeText } from "../../text_safety.js";
import { counted, shortPath, within } from "../../words.js";
import { drawBlock, strange } from "./blocks.js";
import { DiffView } from "./diff.js";
import { codeBlock } from "./markdown.js";
import { pathLink } from "./places.js";
import { Slices } from "./slices.js";
import { TerminalView } from "./terminal.js";

const WORDS = { pending: "Waiting", in_progress: "Running", paused: "Paused", completed: "Done",
  failed: "Failed", cancelled: "Cancelled", left: "Not finished" };
const MARKS = { completed: "check", failed: "close", cancelled: "stop", paused: "pause", pending: "clock",
  left: "stop" };
const NAMES = { switch_mode: "move" };
const SHOWN_LOCATIONS = 6;
const RAW = 200_000;

export class ToolView {
  #title = h("span", { class: "title" });
  #where = h("span", { class: "where" });
  #mark = h("span", { class: "mark-place" });
  #icon = h("span", { class: "kind" });
  #body = h("div", { class: "body" });
  #parts = [];
  #raw = h("div", { class: "raws" });
  #places = h("ul", { class: "places" });
  #content = h("div", { class: "parts" });
  #drawn = {};

  constructor(item, around) {
    this.item = item;
    this.around = around;
    this.button = h("button",
      { type: "button", class: "head", "aria-expanded": "false", onclick: () => this.#toggle() },
      this.#icon, this.#title, this.#where, this.#mark, h("span", { class: "turn" }, icon("unfold")));
    this.#body.append(this.#places, this.#content, this.#raw);
    this.element = h("article", { class: "tool", "aria-label": "Tool call" }, this.button, this.#body);
  }

  /** Calls with a diff or a terminal are open at first; calls that only read are not. */
  get isOpen() {
    const chosen = this.around.opened(this.item.key);
    if (chosen !== undefined) return chosen;
    if (this.#asked) return false;
    if (this.item.status === "failed") return this.item.content.length > 0;
    return this.item.content.some((part) => part?.type === "diff" || part?.type === "terminal");
  }

  /** Whether a question about this call is open. The question shows the same content. */
  get #asked() {
    const { questions } = this.around.session;
    return questions.some((each) => each.state === "open" && each.toolCallId === this.item.id);
  }

  /** Whether the agent ended its turn and never said how this call ended. */
  get #left() {
    const { state, background } = this.around.session;
    return state === "idle" && !this.item.final
      && !background.some(({ toolCallId, terminalId }) => toolCallId === this.item.id
        || this.item.content.some((part) => part?.type === "terminal" && part.terminalId === terminalId));
  }

  open() {
    this.around.remember(this.item.key, true);
    this.update();
  }

  #toggle() {
    this.around.remember(this.item.key, !this.isOpen);
    this.update();
  }

  update() {
    const { item } = this;
    this.#once("title", item.title ?? item.name, () => {
      setText(this.#title, safeLine(item.title || item.name || "Tool call", 300));
      setLabel(this.#title, "title", safeLine(item.title || "", 1000));
    });
    this.#once("kind", item.toolKind, () => replace(this.#icon, icon(NAMES[item.toolKind] ?? item.toolKind)));
    const status = this.#asked ? "pending" : this.#left ? "left" : item.status;
    this.element.dataset.status = WORDS[status] ? status : "in_progress";
    this.#once("status", status, () => this.#state(status));
    const open = this.isOpen;
    const where = `${item.locations.length} ${item.locations[0]?.path} ${item.title} ${open}`;
    this.#once("where", where, () => this.#place(open));
    this.button.setAttribute("aria-expanded", String(open));
    this.#body.hidden = !open;
    if (open) this.#show();
  }

  #once(name, value, draw) {
    if (this.#drawn[name] === value && name in this.#drawn) return;
    this.#drawn[name] = value;
    draw();
  }

  #state(status) {
    const word = WORDS[status] ?? safeLine(status ?? "", 24);
    const spinner = () => h("span", { class: "spinner", "aria-hidden": "true" });
    replace(this.#mark, MARKS[status] ? icon(MARKS[status]) : spinner(), h("span", { class: "word" }, word));
  }

  #place(open) {
    const { locations, title } = this.item;
    const first = locations[0]?.path;
    const named = first && !String(title ?? "").includes(String(first).split(/[\\/]/).at(-1));
    const more = locations.length > 1 ? ` and ${locations.length - 1} more` : "";
    setText(this.#where, named && !open ? shortPath(within(first, this.around.session.cwd)) + more : "");
  }

  #show() {
    const { item } = this;
    this.#once("places", JSON.stringify(item.locations).slice(0, 4000), () => this.#locations());
    item.content.forEach((part, at) => this.#part(part, at));
    for (const view of this.#parts.splice(item.content.length)) view.element.remove();
    this.#once("raw", `${item.version - this.#terminalVersions()}`, () => this.#raws());
  }

  /** The versions of the terminals, whose output does not change the raw input and output. */
  #terminalVersions() {
    const { terminals } = this.around.session;
    const shown = this.item.content.filter((part) => part?.type === "terminal");
    return shown.reduce((sum, part) => sum + (terminals.get(part.terminalId)?.version ?? 0), 0);
  }

  #part(part, at) {
    const before = this.#parts[at];
    const kind = part?.type;
    let view = before?.kind === kind && (before.set || before.part === part) ? before : null;
    if (!view) {
      view = this.#view(part);
      if (before) before.element.replaceWith(view.element);
      else this.#content.append(view.element);
      this.#parts[at] = view;
    }
    view.set?.(part);
  }

  #view(part) {
    const kind = part?.type;
    if (kind === "diff") {
      const { app, session } = this.around;
      const diff = new DiffView(session.cwd, (path) => app.emit("changes", { path }), "Show all changes of this file");
      return { kind, element: diff.element, set: (next) => diff.set(next) };
    }
    if (kind === "terminal") {
      const view = new TerminalView();
      return { kind, element: view.element,
        set: (next) => view.set(this.around.session.terminals.get(next.terminalId)) };
    }
    if (kind === "content") return { kind, part, element: output(part.content) };
    return { kind, part, element: strange(kind) };
  }

  #locations() {
    const { locations } = this.item;
    this.#places.hidden = !locations.length || this.item.content.some((part) => part?.type === "diff");
    const shown = locations.slice(0, SHOWN_LOCATIONS).map(({ path, line }) => {
      return h("li", null, icon("file"), pathLink(this.around, path),
        line ? h("span", { class: "at" }, `:${line}`) : null);
    });
    const rest = locations.length - shown.length;
    const more = rest > 0 ? h("li", { class: "note" }, `and ${counted(rest, "more place")}`) : null;
    replace(this.#places, shown, more);
  }

  #raws() {
    const { rawInput, rawOutput, capabilities, id } = this.item;
    const cancel = () => this.around.cancelTool(id);
    const may = capabilities?.cancel && !this.item.final && this.around.app.role !== "observer";
    replace(this.#raw, raw("Input", rawInput), raw("Output", rawOutput),
      may ? h("button", { type: "button", class: "small", onclick: cancel }, icon("stop"), "Stop") : null);
  }
}

/** The output of a tool. It is mostly not Markdown, so text is shown as it is. */
function output(block) {
  if (block?.type !== "text") return drawBlock(block);
  const text = block.text;
  const slices = new Slices((element, part) => {
    setText(element, printedText(part));
  });
  slices.set(text);
  const fence = /^```(\S*)\n([\s\S]*?)\n?```\s*$/.exec(text.length < 100_000 ? text : "");
  if (fence) return codeBlock(printedText(fence[2]), fence[1]);
  return h("pre", { class: "output", tabindex: "0" }, slices.element);
}

function raw(label, value) {
  if (value === null || value === undefined) return null;
  const details = h("details", { class: "raw" }, h("summary", null, label));
  details.addEventListener("toggle", () => {
    if (!details.open || details.childNodes.length > 1) return;
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    details.append(codeBlock(safeText(text.slice(0, RAW)), typeof value === "string" ? "text" : "json"));
  });
  return details;
}
