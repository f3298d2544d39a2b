// The options of the session: mode, model and others.

import { h, replace, setLabel } from "../dom.js";
import { follow } from "../follow.js";
import { safeLine } from "../text_safety.js";
import { tell } from "./toasts.js";

const SHOWN = 12;
const ORDER = ["mode", "model", "model_config", "thought_level"];

/** The options that can be shown, the mode first. Pure. */
export function arranged(options) {
  const rank = (option) => (ORDER.includes(option.category) ? ORDER.indexOf(option.category) : ORDER.length);
  return options
    .filter((option) => option.type === "select" || option.type === "boolean")
    .sort((one, two) => rank(one) - rank(two))
    .slice(0, SHOWN);
}

/** The choices of a select, in groups. Choices without a group have the name null. Pure. */
export function groupsOf(option) {
  const groups = [];
  for (const each of option.options ?? []) {
    if (Array.isArray(each.options)) groups.push({ name: each.name ?? each.group, values: each.options });
    else if (groups.at(-1)?.name === null) groups.at(-1).values.push(each);
    else groups.push({ name: null, values: [each] });
  }
  return groups;
}

const idOf = (option) => option.configId ?? option.id;

export function mount(app, element) {
  element.setAttribute("role", "group");
  setLabel(element, "aria-label", "Options of the session");
  follow(app, ["options"], (session) => {
    const focused = element.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    const looking = app.role === "observer";
    replace(
      element,
      arranged(session?.options ?? []).map((option) => control(app, session, option, looking)),
    );
    if (focused !== null) element.querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
  });
}

/** A control for an option. `session.setOption(id, value)` sets it. */
export function control(app, session, option, disabled) {
  const id = idOf(option);
  const name = safeLine(option.name ?? id, 40);
  const choose = async (value, undo) => {
    try {
      await session.setOption(id, value);
    } catch (error) {
      undo();
      tell(app, `${name} was not changed`, error);
    }
  };
  const about = safeLine(option.description ?? name, 200);
  if (option.type === "boolean") {
    const on = option.currentValue === true;
    const button = h(
      "button",
      {
        type: "button",
        class: "switch",
        role: "switch",
        "aria-checked": String(on),
        disabled,
        title: about,
        dataset: { id },
        onclick: () => {
          button.setAttribute("aria-checked", String(!on));
          choose(!on, () => button.setAttribute("aria-checked", String(on)));
        },
      },
      h("span", { class: "knob", "aria-hidden": "true" }),
      name,
    );
    return button;
  }
  const select = h(
    "select",
    {
      "aria-label": name,
      title: about,
      disabled,
      dataset: { id },
      onchange: () => choose(select.value, () => (select.value = option.currentValue)),
    },
    groupsOf(option).map(({ name: group, values }) => {
      const entries = values.map((each) =>
        h(
          "option",
          { value: each.value, title: safeLine(each.description ?? "", 200) },
          safeLine(each.name ?? each.value, 60),
        ),
      );
      return group === null ? entries : h("optgroup", { label: safeLine(group, 60) }, entries);
    }),
  );
  select.value = option.currentValue;
  return h("label", { class: "option" }, h("span", { "aria-hidden": "true" }, name), select);
}
