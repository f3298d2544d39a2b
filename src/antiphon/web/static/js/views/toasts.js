// Short news that go by themselves; an error stays longer, says what to do next, and can be sent away.

import { h, on } from "../dom.js";
import { icon } from "../icons.js";
import { safeLine } from "../text_safety.js";

const SHOWN = 4;

/** What one can do about a refusal, by its code and reason. */
export function advice({ code, data } = {}) {
  const reason = data?.reason;
  if (reason === "forbidden") return "You look on here. Ask the owner for a link that lets you act.";
  if (reason === "limit") return "The hub has a limit for this. Wait a moment and try again.";
  if (reason === "already_delivered")
    return "It is with the agent already. Stop the turn, or send another prompt.";
  if (reason === "unknown_message_id") return "It is not in the queue any more.";
  if (code === -32000) return "The agent wants a login. Log in with its own command on the hub's machine.";
  if (code === -32601) return "This agent cannot do that.";
  if (data?.stderr) return safeLine(data.stderr, 300);
  return null;
}

/** An error of a call as it is told: a title of ours, then what the other side said. */
export function tell(app, title, error) {
  const message = [safeLine(error?.message ?? String(error), 300), advice(error)]
    .filter(Boolean)
    .join(" ");
  app.emit("error", { title, message });
}

export function mount(app, element) {
  const show = ({ title, message, kind = "bad", action }) => {
    const repeated = [...element.children].find((each) => each.dataset.said === `${title}${message}`);
    repeated?.remove();
    while (element.children.length >= SHOWN) element.firstElementChild.remove();
    const toast = h(
      "div",
      { class: ["toast", kind], dataset: { said: `${title}${message}` } },
      icon(kind === "bad" ? "warning" : "info"),
      h(
        "div",
        null,
        h("strong", null, safeLine(title, 120)),
        message ? h("p", null, safeLine(message, 600)) : null,
        action
          ? h("button", { type: "button", onclick: () => (toast.remove(), action.run()) }, action.label)
          : null,
      ),
      h(
        "button",
        { type: "button", class: "quiet icon-only", "aria-label": "Dismiss", onclick: () => toast.remove() },
        icon("close"),
      ),
    );
    element.append(toast);
    let timer = 0;
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(() => toast.remove(), kind === "bad" ? 12_000 : 5000);
    };
    for (const type of ["pointerenter", "focusin"]) on(toast, type, () => clearTimeout(timer));
    for (const type of ["pointerleave", "focusout"]) on(toast, type, wait);
    wait();
  };
  app.on("error", show);
  app.on("told", (detail) => show({ kind: "news", ...detail }));
}
