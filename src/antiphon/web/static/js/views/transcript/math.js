// Formulas as MathML. A formula that is not understood is shown as it was written.

import { h, textNode } from "../../dom.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";

/** Draw a formula, or its source where there is no tree of it. */
export function drawMath({ tree, source, display }) {
  if (!tree) return h("span", { class: "formula-source" }, source);
  const made = draw(tree);
  made.setAttribute("alttext", source.slice(0, 500));
  if (!display) return made;
  return h("div", { class: "formula", tabindex: "0", role: "region", "aria-label": "Formula" }, made);
}

function draw({ tag, attributes, children, text }) {
  const element = document.createElementNS(MATHML, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) element.setAttribute(name, value);
  if (text !== undefined) element.append(textNode(text));
  else for (const child of children) element.append(draw(child));
  return element;
}
