// The form of an elicitation. Problems are shown at the fields when the user sends it.

import { h, setText } from "../dom.js";
import { fieldsOf, readForm } from "../form_fields.js";
import { safeLine, safeText } from "../text_safety.js";

const RADIOS = 6;
const LONG = 240;
const TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

let count = 0;

export class Form {
  constructor(schema) {
    this.fields = fieldsOf(schema);
    this.rows = this.fields.map((field) => new Row(field));
    this.element = h(
      "div",
      { class: "form" },
      this.rows.map((row) => row.element),
    );
  }

  /** The values, or null if a value is wrong. The problem is shown, and its field gets the focus. */
  read() {
    const filled = Object.fromEntries(this.rows.map((row) => [row.field.name, row.value]));
    const { values, problems, notes } = readForm(this.fields, filled);
    this.complain(problems);
    for (const row of this.rows) row.remark(notes[row.field.name] ?? hiddenIn(row.value));
    return Object.keys(problems).length ? null : values;
  }

  complain(problems) {
    for (const row of this.rows) row.complain(problems[row.field.name] ?? null);
    this.rows.find((row) => problems[row.field.name])?.focus();
  }
}

class Row {
  constructor(field) {
    this.field = field;
    this.id = `field-${++count}`;
    this.problem = h("p", { class: "problem", id: `${this.id}-problem`, role: "alert", hidden: true });
    this.note = h("p", { class: "note", role: "status", hidden: true });
    const note = field.description
      ? h("p", { class: "note", id: `${this.id}-note` }, safeText(field.description.slice(0, 2000)))
      : null;
    this.described = [note && `${this.id}-note`, `${this.id}-problem`].filter(Boolean).join(" ");
    this.control = CONTROLS[field.kind](this);
    this.element = this.#wrap(note);
    this.element.append(this.note);
    this.remark(hiddenIn(field.default));
  }

  #title() {
    const { title, required, default: given } = this.field;
    return [safeLine(title, 200), required || given !== null ? null : h("small", null, " optional")];
  }

  #wrap(note) {
    const { kind } = this.field;
    if (kind === "boolean") {
      return h(
        "div",
        { class: "field check" },
        h("label", null, this.control, h("span", null, safeLine(this.field.title, 200))),
        note,
        this.problem,
      );
    }
    if (this.group) {
      return h(
        "fieldset",
        { class: "field", "aria-describedby": this.described },
        h("legend", null, this.#title()),
        note,
        this.control,
        this.problem,
      );
    }
    return h(
      "div",
      { class: "field" },
      h("label", { for: this.id }, this.#title()),
      note,
      this.control,
      this.problem,
    );
  }

  get inputs() {
    return this.group ? [...this.control.querySelectorAll("input")] : [this.control];
  }

  get value() {
    const { kind, format } = this.field;
    if (kind === "boolean") return this.control.checked;
    if (kind === "choices") return this.inputs.filter((input) => input.checked).map((input) => input.value);
    if (this.group) return this.inputs.find((input) => input.checked)?.value ?? null;
    if (format === "date-time" && this.control.value) return new Date(this.control.value).toISOString();
    return this.control.value ?? null;
  }

  complain(problem) {
    this.problem.hidden = problem === null;
    setText(this.problem, problem ?? "");
    for (const input of this.inputs) input.setAttribute?.("aria-invalid", String(problem !== null));
  }

  /** Show a note about a value, which can be sent anyway. */
  remark(note) {
    this.note.hidden = note === null;
    setText(this.note, note ?? "");
  }

  focus() {
    this.inputs[0]?.focus();
  }
}

/** A note for a text with characters that its control would not show, or null. */
function hiddenIn(text) {
  if (typeof text !== "string" || safeText(text) === text.replaceAll("\r\n", "\n")) return null;
  return `The value contains hidden characters: ${safeText(text.slice(0, 2000))}`;
}

const CONTROLS = {
  text: (row) => {
    const { format, default: value, maxLength } = row.field;
    const common = {
      id: row.id,
      value: initial(value, format),
      "aria-describedby": row.described,
      maxlength: maxLength,
      "aria-required": String(row.field.required),
    };
    if (format === null && maxLength !== null && maxLength > LONG)
      return h("textarea", { rows: 3, ...common });
    return h("input", {
      type: TYPES[format] ?? "text",
      autocomplete: format === "email" ? "email" : "off",
      ...common,
    });
  },
  number: (row) => numeric(row, "decimal"),
  integer: (row) => numeric(row, "numeric"),
  boolean: (row) =>
    h("input", {
      type: "checkbox",
      id: row.id,
      checked: row.field.default === true,
      "aria-describedby": row.described,
    }),
  choice: (row) => {
    const { options, default: value, required } = row.field;
    if (options.length <= RADIOS) return marks(row, "radio", (option) => option.value === value);
    return h(
      "select",
      { id: row.id, "aria-describedby": row.described },
      value === null ? h("option", { value: "" }, required ? "Choose" : "None") : null,
      options.map((option) =>
        h(
          "option",
          { value: option.value, selected: option.value === value },
          safeLine(option.title, 120),
        ),
      ),
    );
  },
  choices: (row) => {
    const chosen = Array.isArray(row.field.default) ? row.field.default : [];
    return marks(row, "checkbox", (option) => chosen.includes(option.value));
  },
  unknown: () => h("p", { class: "note" }, "This page does not support this kind of field."),
};

function numeric(row, inputmode) {
  const { default: value, minimum, maximum } = row.field;
  const range = minimum !== null && maximum !== null ? `${minimum} to ${maximum}` : null;
  return h("input", {
    id: row.id,
    class: "short",
    type: "text",
    inputmode,
    autocomplete: "off",
    value: value ?? "",
    placeholder: range,
    "aria-describedby": row.described,
    "aria-required": String(row.field.required),
  });
}

function marks(row, type, isChosen) {
  row.group = true;
  return h(
    "div",
    { class: "marks" },
    row.field.options.map((option) =>
      h(
        "label",
        null,
        h("input", { type, name: row.id, value: option.value, checked: isChosen(option) }),
        h(
          "span",
          null,
          safeLine(option.title, 120),
          option.description ? h("small", null, safeLine(option.description, 200)) : null,
        ),
      ),
    ),
  );
}

/** A default value for its control: a time in the local zone, without the zone. */
function initial(value, format) {
  if (format !== "date-time" || typeof value !== "string" || Number.isNaN(Date.parse(value)))
    return value ?? "";
  const time = new Date(value);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
