// The two panels beside the transcript. On wide screens they are columns; on narrow ones they are drawers over
// the page, which is inert below them.

import { h, on } from "../dom.js";
import { keep, kept } from "../storage.js";

const PANELS = {
  sessions: { drawer: "(max-width: 719px)", rest: ["bar", "main", "side"] },
  side: { drawer: "(max-width: 1119px)", rest: ["bar", "main", "sessions"] },
};
const listeners = new Set();
let opener = null;

export function isOpen(name) {
  return document.documentElement.dataset[name] === "open";
}

export function isDrawer(name) {
  return matchMedia(PANELS[name].drawer).matches;
}

export function setPanel(name, open) {
  const drawer = isDrawer(name);
  if (open && drawer) {
    for (const other of Object.keys(PANELS)) if (other !== name && isDrawer(other)) show(other, false);
    opener = document.activeElement;
  }
  show(name, open);
  if (!drawer) keep(`panel.${name}`, open ? null : "closed");
  else if (open) document.getElementById(name).querySelector("input, button, [tabindex='0']")?.focus();
  else if (opener?.isConnected) opener.focus();
}

export function togglePanel(name) {
  setPanel(name, !isOpen(name));
}

/** Close the open drawer. Returns whether there was one. */
export function closeDrawer() {
  const name = Object.keys(PANELS).find((each) => isDrawer(each) && isOpen(each));
  if (name !== undefined) setPanel(name, false);
  return name !== undefined;
}

/** Call `listener` at every change. Returns a function that stops it. */
export function onPanels(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function show(name, open) {
  document.documentElement.dataset[name] = open ? "open" : "closed";
  const covering = Object.keys(PANELS).find((each) => isDrawer(each) && isOpen(each));
  for (const id of ["bar", "main", "sessions", "side"]) {
    document.getElementById(id).inert = covering !== undefined && PANELS[covering].rest.includes(id);
  }
  for (const listener of listeners) listener();
}

/** Measure the width of a scroll bar, which is 0 if it overlays the page. */
function measureScrollBar() {
  const inner = h("div");
  const probe = h("div", { class: "scroll-probe" }, inner);
  document.body.append(probe);
  const width = (probe.offsetWidth - inner.offsetWidth) / 2;
  document.documentElement.style.setProperty("--scroll-bar", `${width}px`);
  probe.remove();
}

export function mount(page) {
  measureScrollBar();
  page.append(h("div", { class: "scrim", onclick: () => closeDrawer() }));
  for (const [name, panel] of Object.entries(PANELS)) {
    const settle = () => show(name, !isDrawer(name) && kept(`panel.${name}`) !== "closed");
    on(matchMedia(panel.drawer), "change", settle);
    settle();
  }
}
