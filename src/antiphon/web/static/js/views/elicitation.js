// Elicitations: a form to fill in, or an address to visit, whose host is shown before it is opened.

import { h } from "../dom.js";
import { icon } from "../icons.js";
import { safeLine, safeText } from "../text_safety.js";
import { Form } from "./form.js";

/** `{host, href, plain}` of an address that may be opened, or null. Pure. */
export function addressOf(url) {
  try {
    const { protocol, host, hostname, href, username, password } = new URL(url);
    if (protocol !== "https:" && protocol !== "http:") return null;
    if (username || password) return null;
    return { host, href, secure: protocol === "https:", ascii: !hostname.includes("xn--") };
  } catch {
    return null;
  }
}

export function elicitationCard(app, session, question, answerWith) {
  const name = safeLine(question.title || question.message || "A question", 240);
  const said = question.message ? safeText(question.message.slice(0, 8000)) : "";
  const looking = app.role === "observer";
  const isUrl = question.mode === "url" || Boolean(question.url);
  const form = !isUrl && question.schema ? new Form(question.schema) : null;
  const decline = h(
    "button",
    { type: "button", onclick: () => answerWith({ action: "decline" }) },
    "Decline",
  );
  const cancel = h(
    "button",
    { type: "button", class: "quiet", onclick: () => answerWith({ action: "cancel" }) },
    "Not now",
  );
  const body = isUrl ? visit(question, answerWith, decline, cancel) : fill(form, answerWith, decline, cancel);
  const element = h(
    "section",
    { class: "question elicitation", "aria-label": `Question: ${name}` },
    h(
      "header",
      null,
      h("span", { class: "dot waiting", "aria-hidden": "true" }),
      h("span", { class: "asks" }, isUrl ? "The agent asks you to visit an address" : "The agent asks"),
    ),
    h("h3", null, question.title ? name : said || name),
    question.title && said ? h("p", { class: "asked" }, said) : null,
    looking ? h("p", { class: "note" }, "You are an observer. Other users can answer.") : body,
  );
  return { element, name };
}

function fill(form, answerWith, decline, cancel) {
  if (form === null) return h("p", { class: "note" }, "Another user is asked.");
  return h(
    "form",
    {
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        const content = form.read();
        if (content !== null) answerWith({ action: "accept", content });
      },
    },
    form.element,
    h(
      "div",
      { class: "answers" },
      h("button", { type: "submit", class: "primary" }, icon("check"), "Answer"),
      decline,
      cancel,
    ),
  );
}

function visit(question, answerWith, decline, cancel) {
  const address = addressOf(question.url);
  if (address === null) {
    return h(
      "div",
      null,
      h(
        "p",
        { class: "problem" },
        "The agent asks you to open an address that is not a safe web address: ",
        h("code", null, safeLine(question.url ?? "", 300)),
      ),
      h("div", { class: "answers" }, decline, cancel),
    );
  }
  const go = h(
    "a",
    {
      class: "button primary",
      href: address.href,
      target: "_blank",
      rel: "noopener noreferrer",
      referrerpolicy: "no-referrer",
      onclick: () => answerWith({ action: "accept" }),
    },
    icon("open"),
    "Open ",
    address.host,
  );
  return h(
    "div",
    null,
    h(
      "p",
      { class: "host" },
      h("small", null, "The agent asks to open"),
      h("strong", null, address.host),
      h("code", null, safeLine(address.href, 400)),
    ),
    address.secure ? null : h("p", { class: "problem" }, "Not encrypted: others on the network can read what you send."),
    address.ascii
      ? null
      : h("p", { class: "problem" }, "This host name has unusual letters that can imitate others. Check it carefully."),
    h("div", { class: "answers" }, go, decline, cancel),
  );
}
