// Short messages that disappear after a while. Errors stay longer and say what to do next.

import { h, on } from "../dom.js";
import { icon, iconButton } from "../icons.js";
import { safeLine } from "../text_safety.js";

const SHOWN = 4;

/** Advice for an error, by its code and reason. */
export function advice({ code, data } = {}) {
  const reason = data?.reason;
  if (reason === "forbidden") return "You are an observer. Ask an owner for a link with another role.";
  if (reason === "limit") return "The hub limits this. Wait a moment and try again.";
  if (reason === "already_delivered")
    return "The agent already has it. Stop the turn, or send another prompt.";
  if (reason === "unknown_message_id") return "It is no longer in the queue.";
  if (code === -32000) return "The agent requires a login. Log in with the agent's own command on the hub's machine.";
  if (code === -32601) return "This agent cannot do that.";
  if (data?.stderr) return safeLine(data.stderr, 300);
  return null;
}

/** Show the error of a call: our title, the message of the hub, and advice. */
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
      iconButton("close", "Dismiss", () => toast.remove()),
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
