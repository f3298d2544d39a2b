// Elements, built node by node. Foreign text becomes text nodes and nothing else, and is made safe to show. All
// text of the page passes here.

import { safeText } from "./text_safety.js";

const PROPERTIES = new Set(["value", "checked", "selected", "disabled", "hidden", "open", "indeterminate"]);

/** Attributes that people read; others are names, numbers and addresses. */
const LABELS = new Set(["alt", "aria-description", "aria-label", "aria-valuetext", "placeholder", "title"]);

/**
 * An element. Of `props`, functions are listeners (`onclick`), `class` may be an array with holes, `dataset`
 * and `style` are objects, `true` is a bare attribute, and `null`, `undefined` and `false` are left out.
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  append(element, children);
  return element;
}

function set(element, name, value) {
  if (PROPERTIES.has(name)) element[name] = value ?? (name === "value" ? "" : false);
  else if (value === null || value === undefined || value === false) return;
  else if (typeof value === "function") element.addEventListener(name.replace(/^on/, ""), value);
  else if (name.startsWith("on")) throw new TypeError(`a listener is a function: ${name}`);
  else if (name === "class") element.className = [value].flat().filter(Boolean).join(" ");
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (name === "style") {
    for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
  } else if (LABELS.has(name)) setLabel(element, name, value === true ? "" : value);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** Set an attribute that people read. */
export function setLabel(element, name, text) {
  element.setAttribute(name, safeText(text));
}

/** Replace the content of an element by a text. */
export function setText(element, text) {
  element.textContent = safeText(text);
}

export function textNode(text) {
  return document.createTextNode(safeText(text));
}

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child === null || child === undefined || child === false) continue;
    else element.append(child instanceof Node ? child : textNode(child));
  }
}

/** A line with its commands, which stand between backticks, as code. */
export function withCode(line) {
  const parts = line.split("`");
  return parts.length % 2 ? parts.map((part, index) => (index % 2 ? h("code", null, part) : part)) : [line];
}

/** Replace the children of an element. */
export function replace(element, ...children) {
  const fragment = document.createDocumentFragment();
  append(fragment, children);
  element.replaceChildren(fragment);
}

/** Add a listener. Returns a function that removes it. */
export function on(element, type, listener, options) {
  element.addEventListener(type, listener, options);
  return () => element.removeEventListener(type, listener, options);
}
