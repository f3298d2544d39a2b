// Highlighted code as nodes.

import { h, replace, textNode } from "../../dom.js";
import { highlight } from "../../highlight/highlight.js";

/** Draw a text into an element, in the colours of its language if that is known. */
export function drawCode(element, text, language) {
  replace(element, language ? drawPieces(highlight(text, language)) : text);
}

export function drawPieces(pieces) {
  return pieces.map(({ kind, text }) => (kind ? h("span", { class: `c-${kind}` }, text) : textNode(text)));
}
