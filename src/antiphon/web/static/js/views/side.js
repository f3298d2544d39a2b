// The side panel with its tabs: plan, files, timeline, people.

import { h, on, replace, setText } from "../dom.js";
import { keep, kept } from "../storage.js";
import { iconButton } from "../icons.js";
import { mount as mountFiles } from "./files.js";
import { isDrawer, isOpen, setPanel } from "./panels.js";
import { mount as mountPeople } from "./people.js";
import { mount as mountPlan } from "./plan.js";
import { mount as mountTimeline } from "./timeline.js";

const TABS = {
  plan: ["Plan", mountPlan],
  files: ["Files", mountFiles],
  timeline: ["Timeline", mountTimeline],
  people: ["People", mountPeople],
};

export function mount(app, element) {
  const names = Object.keys(TABS);
  const tabs = {};
  const panels = {};
  const shows = {};

  const select = (name, { focus = false } = {}) => {
    for (const each of names) {
      const chosen = each === name;
      tabs[each].setAttribute("aria-selected", String(chosen));
      tabs[each].tabIndex = chosen ? 0 : -1;
      panels[each].hidden = !chosen;
      shows[each]?.(chosen);
    }
    keep("tab", name);
    if (focus) tabs[name].focus();
  };

  for (const name of names) {
    const [label] = TABS[name];
    const count = h("span", { class: "tab-count" });
    tabs[name] = h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": `panel-${name}`,
        onclick: () => select(name),
      },
      label,
      count,
    );
    panels[name] = h("div", {
      role: "tabpanel",
      id: `panel-${name}`,
      "aria-labelledby": `tab-${name}`,
      tabindex: "0",
    });
    shows[name] = TABS[name][1](app, panels[name], (text) => setText(count, text)) ?? null;
  }
  const list = h(
    "div",
    { class: "tabs", role: "tablist", "aria-label": "About this session" },
    Object.values(tabs),
  );
  const shut = iconButton("close", "Close", () => setPanel("side", false), { kind: "shut" });
  on(list, "keydown", (event) => {
    const at = names.findIndex((name) => tabs[name] === document.activeElement);
    const steps = { ArrowRight: at + 1, ArrowLeft: at - 1 + names.length, Home: 0, End: names.length - 1 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    select(names[steps[event.key] % names.length], { focus: true });
  });
  replace(element, h("div", { class: "side-head" }, list, shut), Object.values(panels));
  app.on("tab", (name) => {
    if (!isOpen("side")) setPanel("side", true);
    select(name, { focus: true });
  });
  for (const shown of ["reveal", "changes"]) app.on(shown, () => isDrawer("side") && isOpen("side") && setPanel("side", false));
  select(names.includes(kept("tab")) ? kept("tab") : "plan");
}
