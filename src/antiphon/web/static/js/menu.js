// Menus of buttons, with arrow keys, Home, End, first letters and Escape.

import { h, on } from "./dom.js";

let count = 0;

/**
 * Make a button open a menu. `items()` returns `{label, note?, icon?, checked?, run}` or strings, which are
 * headings. It is called each time the menu opens.
 */
export function opensMenu(button, items, { label, align = "end" } = {}) {
  const list = h("div", {
    class: "menu",
    role: "menu",
    id: `menu-${++count}`,
    popover: "auto",
    "aria-label": label,
  });
  button.setAttribute("aria-haspopup", "menu");
  button.setAttribute("aria-expanded", "false");
  button.setAttribute("aria-controls", list.id);
  button.after(list);

  const entries = () => [...list.querySelectorAll("button")];
  const focus = (index) => {
    const all = entries();
    all.at(((index % all.length) + all.length) % all.length)?.focus();
  };
  const open = () => {
    list.replaceChildren(...items().map((item) => entry(item, list)));
    list.showPopover();
    place(list, button, align);
    focus(
      Math.max(
        0,
        entries().findIndex((each) => each.getAttribute("aria-checked") === "true"),
      ),
    );
  };
  on(button, "click", () => (list.matches(":popover-open") ? list.hidePopover() : open()));
  on(button, "keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    open();
  });
  on(window, "resize", () => list.matches(":popover-open") && place(list, button, align));
  on(list, "toggle", (event) => button.setAttribute("aria-expanded", String(event.newState === "open")));
  on(list, "keydown", (event) => {
    const at = entries().indexOf(document.activeElement);
    const steps = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 };
    if (event.key in steps) focus(steps[event.key]);
    else if (event.key === "Escape" || event.key === "Tab") {
      list.hidePopover();
      button.focus();
    } else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey) {
      const letter = event.key.toLowerCase();
      entries()
        .find((each) => each.textContent.toLowerCase().startsWith(letter))
        ?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return list;
}

function entry(item, list) {
  if (typeof item === "string") return h("div", { class: "menu-heading", role: "presentation" }, item);
  const choice = item.checked !== undefined;
  return h(
    "button",
    {
      type: "button",
      tabindex: "-1",
      role: choice ? "menuitemradio" : "menuitem",
      "aria-checked": choice ? String(item.checked) : null,
      onclick: () => {
        list.hidePopover();
        item.run();
      },
    },
    item.icon ?? null,
    h("span", null, item.label),
    item.note ? h("small", null, item.note) : null,
  );
}

function place(list, button, align) {
  const edge = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = list;
  const left = align === "end" ? edge.right - width : edge.left;
  const below = edge.bottom + 6 + height <= innerHeight;
  list.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  list.style.top = `${Math.max(8, below ? edge.bottom + 6 : edge.top - 6 - height)}px`;
}
