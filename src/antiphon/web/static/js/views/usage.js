// The usage of the context as a ring and numbers, and the cost.

import { h } from "../dom.js";
import { cost, many } from "../words.js";

const SVG = "http://www.w3.org/2000/svg";
const RADIUS = 6;
const AROUND = 2 * Math.PI * RADIUS;

function circle(name) {
  const drawn = document.createElementNS(SVG, "circle");
  for (const [key, value] of [
    ["cx", 8],
    ["cy", 8],
    ["r", RADIUS],
  ])
    drawn.setAttribute(key, value);
  drawn.setAttribute("class", name);
  return drawn;
}

function ring(share) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", share > 0.85 ? "ring full" : "ring");
  svg.setAttribute("aria-hidden", "true");
  const used = circle("used");
  used.setAttribute("stroke-dasharray", `${(Math.min(1, share) * AROUND).toFixed(2)} ${AROUND.toFixed(2)}`);
  svg.append(circle("all"), used);
  return svg;
}

/** As text: "12k of 200k tokens (6 %), $0.04 so far". */
export function usageWords(usage) {
  const share = usage.size ? ` (${Math.round((100 * usage.used) / usage.size)} %)` : "";
  const spent = usage.cost ? `, ${cost(usage.cost)} so far` : "";
  return `${many(usage.used)} of ${many(usage.size)} tokens${share}${spent}`;
}

export function usageMark(usage) {
  if (!usage) return null;
  const words = `Context: ${usageWords(usage)}`;
  return h(
    "span",
    { class: "usage", role: "img", "aria-label": words, title: words },
    ring(usage.size ? usage.used / usage.size : 0),
    h("span", { class: "numbers" }, `${many(usage.used)} / ${many(usage.size)}`),
    usage.cost ? h("span", { class: "numbers cost" }, cost(usage.cost)) : null,
  );
}
