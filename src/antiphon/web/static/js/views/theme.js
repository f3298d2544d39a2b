// The theme: light, dark or that of the system, the same in every tab.

import { on } from "../dom.js";
import { icon } from "../icons.js";
import { keep, kept } from "../storage.js";

const THEMES = { system: "As the system", light: "Light", dark: "Dark" };

export function theme() {
  const chosen = kept("theme");
  return chosen in THEMES ? chosen : "system";
}

function apply() {
  const chosen = theme();
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

export function setTheme(chosen) {
  keep("theme", chosen === "system" ? null : chosen);
  apply();
}

/** The entries of the theme menu. */
export function themeItems() {
  return Object.entries(THEMES).map(([name, label]) => ({
    label,
    icon: icon(name),
    checked: theme() === name,
    run: () => setTheme(name),
  }));
}

export function mount() {
  apply();
  on(window, "storage", (event) => event.key === "antiphon.theme" && apply());
}
