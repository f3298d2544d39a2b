// Icons on a 16 px grid, in the colour of the text beside them. They are hidden from screen readers, because
// each has a label.

import { h } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";

const CIRCLE = "M8 2.25a5.75 5.75 0 1 1 0 11.5 5.75 5.75 0 0 1 0-11.5z";
const point = (x) => `M${x} 8m-.7 0a.7.7 0 1 0 1.4 0a.7.7 0 1 0-1.4 0`;

const PATHS = {
  add: ["M8 3v10M3 8h10"],
  archive: ["M2.5 3.5h11v3h-11zM3.5 6.5v6h9v-6M6.5 9h3"],
  attach: [
    "M12.5 7.5 7.6 12.4a2.9 2.9 0 0 1-4.1-4.1l5.3-5.3a2 2 0 0 1 2.8 2.8l-5.2 5.2a1 1 0 0 1-1.4-1.4L9.8 4.8",
  ],
  bell: ["M4 11V7.25a4 4 0 0 1 8 0V11l1.25 1.5H2.75zM6.75 12.5a1.25 1.25 0 0 0 2.5 0"],
  check: ["M3 8.5 6.5 12 13 4.5"],
  clock: [CIRCLE + "M8 5v3.25L10 9.5"],
  close: ["M4 4l8 8M12 4l-8 8"],
  copy: ["M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1"],
  dark: ["M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6z"],
  delete: ["M3 4.5h10M6.5 4V2.5h3V4M4.5 4.5l.5 9h6l.5-9M6.8 7v4M9.2 7v4"],
  down: ["M8 3v10M4 9l4 4 4-4"],
  edit: ["M3 13l.6-2.8 7.2-7.2 2.2 2.2-7.2 7.2zM9.4 4.4l2.2 2.2"],
  execute: ["M2.5 3.5h11v9h-11zM5 6.5 7 8l-2 1.5M8.5 10h2.5"],
  export: ["M8 2.5v7.5M4.8 7 8 10.2 11.2 7M2.75 11v2.5h10.5V11"],
  fetch: [CIRCLE + "M2.5 8h11M8 2.4c-3 3.2-3 8 0 11.2M8 2.4c3 3.2 3 8 0 11.2"],
  file: ["M4 2.5h5l3 3v8H4zM9 2.5v3h3"],
  fold: ["M4 6l4 4 4-4"],
  fork: [
    "M5 5.5v5M5 10.5a4 4 0 0 1 4-3h2V5.5",
    "M5 4m-1.5 0a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0",
    "M5 12m-1.5 0a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0",
    "M11 4m-1.5 0a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0",
  ],
  image: ["M2.5 3h11v10h-11zM2.5 11l3.2-3.2 2.6 2.4 2-1.9 3.2 3M10.5 6.2h.01"],
  info: [CIRCLE + "M8 7.5V11M8 5.1v.1"],
  keys: ["M1.75 4.5h12.5v7H1.75zM4 7h.01M6.7 7h.01M9.4 7h.01M12 7h.01M5 9.5h6"],
  light: [
    "M8 5.25a2.75 2.75 0 1 1 0 5.5 2.75 2.75 0 0 1 0-5.5zM8 1.5V3M8 13v1.5M1.5 8H3M13 8h1.5" +
      "M3.4 3.4l1 1M11.6 11.6l1 1" +
      "M12.6 3.4l-1 1M4.4 11.6l-1 1",
  ],
  move: ["M2.5 8h11M10 4.5 13.5 8 10 11.5"],
  open: ["M9 3h4v4M13 3 7.5 8.5M11.5 9.5v3.5h-8.5V4.5h3.5"],
  other: [point(3.5), point(8), point(12.5)],
  panelLeft: ["M2 3h12v10H2zM6 3v10"],
  panelRight: ["M2 3h12v10H2zM10 3v10"],
  pause: ["M5.5 4v8M10.5 4v8"],
  people: [
    "M6 7.6a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6zM1.8 13c.3-2.5 2-3.6 4.2-3.6s3.9 1.1 4.2 3.6",
    "M10.6 3.2a2.2 2.2 0 0 1 0 4.2M11.8 9.6c1.4.4 2.3 1.5 2.5 3.4",
  ],
  plan: ["M2.5 4l1 1 1.8-2M2.5 11l1 1 1.8-2M8 4.2h5.5M8 11.2h5.5"],
  prompt: ["M2.5 3h11v8h-6l-3 2.5V11h-2z"],
  question: [CIRCLE + "M6.3 6.4a1.75 1.75 0 1 1 2.5 1.6c-.6.3-.8.6-.8 1.2M8 11.1v.1"],
  react: [CIRCLE + "M6 6.6v.1M10 6.6v.1M5.6 9.2c.9 1.7 3.9 1.7 4.8 0"],
  read: [
    "M8 4.2C6.6 3.3 4.8 3 2.5 3.2v9c2.3-.2 4.1.1 5.5 1 1.4-.9 3.2-1.2 5.5-1v-9C11.2 3 9.4 3.3 8 4.2zM8 4.2v9",
  ],
  resume: ["M5.5 3.75 12 8l-6.5 4.25z"],
  retry: ["M13 8a5 5 0 1 1-1.5-3.6M13 2.5v2.8h-2.8"],
  search: ["M7 2.75a4.25 4.25 0 1 1 0 8.5 4.25 4.25 0 0 1 0-8.5zM10.2 10.2 13.5 13.5"],
  send: ["M8 13V3M3.75 7.25 8 3l4.25 4.25"],
  stop: ["M4.5 4.5h7v7h-7z"],
  system: ["M2 3h12v8H2zM6 13.5h4M8 11v2.5"],
  think: ["M8 2.25a4.25 4.25 0 0 1 2.4 7.8v1.7H5.6v-1.7A4.25 4.25 0 0 1 8 2.25zM6.3 13.75h3.4"],
  unfold: ["M6 4l4 4-4 4"],
  up: ["M8 13V3M4 7l4-4 4 4"],
  warning: ["M8 2.5 14 13H2zM8 6.5V9.5M8 11.2v.1"],
};

/** The mark of the page. */
const MARK = ["M3 3.5v6", "M6.5 2v9", "M9.5 5v9", "M13 6.5v6"];

function draw(paths, box, className) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${box} ${box}`);
  svg.setAttribute("class", className);
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("focusable", "false");
  for (const d of paths) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", d);
    svg.append(path);
  }
  return svg;
}

/** The icon with a name. An unknown name, such as a new kind of tool call, gets the icon "other". */
export function icon(name) {
  return draw(PATHS[Object.hasOwn(PATHS, name) ? name : "other"], 16, "icon");
}

/** A button that shows an icon only. `kind`: more classes. */
export function iconButton(name, label, onclick, { kind = "", ...more } = {}) {
  const look = { type: "button", class: ["quiet icon-only", kind], "aria-label": label, title: label };
  return h("button", { ...look, onclick, ...more }, icon(name));
}

export function mark() {
  return draw(MARK, 16, "mark");
}
