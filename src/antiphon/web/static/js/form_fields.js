// The fields of an elicitation, and checks of the answers: the twin of engine/forms.py. Pure.

import { matches } from "./patterns.js";

/** Characters of a text whose field sets no limit. */
const LONGEST_TEXT = 100_000;
const UNCHECKED = "The pattern is too slow to check here. The agent checks the value.";

/**
 * The fields of a requested schema, in their order: `{name, title, description, required, default, kind,
 * …}`, where kind is text, number, integer, boolean, choice (one of `options`), choices (any of them) or
 * unknown (ELIC-09).
 */
export function fieldsOf(schema) {
  const required = new Set(Array.isArray(schema?.required) ? schema.required : []);
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => ({
    name,
    title: textOr(property?.title, name),
    description: textOr(property?.description, null),
    required: required.has(name),
    default: property?.default ?? null,
    ...kindOf(property ?? {}),
  }));
}

const textOr = (value, otherwise) => (typeof value === "string" && value ? value : otherwise);

function kindOf(property) {
  const { type, minimum = null, maximum = null } = property;
  if (type === "number" || type === "integer") return { kind: type, minimum, maximum };
  if (type === "boolean") return { kind: "boolean" };
  if (type === "string") {
    const options = optionsOf(property.oneOf ?? property.enum);
    if (options) return { kind: "choice", options };
    const { minLength = null, maxLength = null, pattern = null, format = null } = property;
    const known = typeof pattern === "string" ? pattern : null;
    return { kind: "text", minLength, maxLength, pattern: known, format };
  }
  if (type === "array") {
    const options = optionsOf(property.items?.anyOf ?? property.items?.oneOf ?? property.items?.enum);
    if (options)
      return {
        kind: "choices",
        options,
        minItems: property.minItems ?? null,
        maxItems: property.maxItems ?? null,
      };
  }
  return { kind: "unknown" };
}

function optionsOf(named) {
  if (!Array.isArray(named) || !named.length) return null;
  return named.map((one) =>
    typeof one === "string"
      ? { value: one, title: one, description: null }
      : { value: one.const, title: textOr(one.title, one.const), description: textOr(one.description, null) },
  );
}

/**
 * Read the values that were filled in, as `{values, problems, notes}`. Empty fields are left out. A note is
 * about a value that is sent although it could not be checked here.
 */
export function readForm(fields, filled) {
  // Without a prototype: a field may be called __proto__.
  const [values, problems, notes] = [Object.create(null), Object.create(null), Object.create(null)];
  for (const field of fields) {
    const given = filled[field.name];
    if (field.kind === "unknown") {
      if (field.required) problems[field.name] = "This page does not support this kind of field. Answer with another client.";
    } else if (isEmpty(field, given)) {
      if (field.required)
        problems[field.name] = field.kind.startsWith("choice") ? "Choose a value" : "Enter a value";
    } else {
      const { value, problem, note } = READERS[field.kind](field, given);
      if (problem) problems[field.name] = problem;
      else values[field.name] = value;
      if (note) notes[field.name] = note;
    }
  }
  return { values, problems, notes };
}

function isEmpty(field, given) {
  if (given === null || given === undefined) return true;
  if (field.kind === "choices") return given.length === 0 && (field.required || !field.minItems);
  return given === "" && !(field.kind === "text" && field.default === "");
}

const READERS = {
  text: (field, value) => {
    const problem = textProblem(field, value);
    if (problem !== null || field.pattern === null) return { value, problem };
    const fits = matches(field.pattern, value);
    if (fits === false) return { problem: "This does not match the required pattern" };
    return { value, note: fits === null ? UNCHECKED : null };
  },
  number: (field, given) => numberOf(field, given, "a number"),
  integer: (field, given) => {
    const read = numberOf(field, given, "a whole number");
    return read.problem || Number.isInteger(read.value) ? read : { problem: "Enter a whole number" };
  },
  boolean: (field, value) => ({ value: value === true }),
  choice: ({ options }, value) =>
    options.some((option) => option.value === value) ? { value } : { problem: "Choose one of these" },
  choices: ({ options, minItems, maxItems }, given) => {
    if (minItems !== null && given.length < minItems) return { problem: `Choose at least ${minItems}` };
    if (maxItems !== null && given.length > maxItems) return { problem: `Choose at most ${maxItems}` };
    return given.every((one) => options.some((option) => option.value === one))
      ? { value: given }
      : { problem: "Choose from these" };
  },
};

function numberOf({ minimum, maximum }, given, what) {
  const value = typeof given === "number" ? given : Number(String(given).trim().replace(",", "."));
  if (String(given).trim() === "" || !Number.isFinite(value)) return { problem: `Enter ${what}` };
  if (minimum !== null && value < minimum) return { problem: `Must be at least ${minimum}` };
  if (maximum !== null && value > maximum) return { problem: `Must be at most ${maximum}` };
  return { value };
}

function textProblem({ minLength, maxLength, format }, value) {
  const length = [...value].length;
  if (minLength !== null && length < minLength) return `Must have at least ${minLength} characters`;
  if (length > (maxLength ?? LONGEST_TEXT)) return `Must have at most ${maxLength ?? LONGEST_TEXT} characters`;
  if (format !== null && !hasFormat(value, format)) return FORMATS[format];
  return null;
}

const FORMATS = {
  email: "Enter an e-mail address, such as ann@example.org",
  uri: "Enter a full address, such as https://example.org",
  date: "Enter a date, such as 2031-01-28",
  "date-time": "Enter a date and a time",
};

function hasFormat(value, format) {
  if (format === "email") return /^\S+@[^\s@]+$/.test(value);
  if (format === "uri") return /^[A-Za-z][A-Za-z0-9+.-]*:\S+$/.test(value);
  if (format === "date") return /^\d{4}-\d{2}-\d{2}$/.test(value) && isDate(value);
  if (format === "date-time") {
    return (
      /^[\d-]{10}[Tt ][\d:]{8}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/.test(value) &&
      !Number.isNaN(Date.parse(value))
    );
  }
  return true;
}

function isDate(value) {
  const date = new Date(`${value}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(value) && !value.startsWith("0000");
}
