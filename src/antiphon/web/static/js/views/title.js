// The title of the session, which can be edited in place.

import { h, on, setText } from "../dom.js";
import { icon } from "../icons.js";
import { safeLine } from "../text_safety.js";
import { tell } from "./toasts.js";

/** The title of a session that has none. */
export const UNTITLED = "Untitled";

/** The title of a session; while its agent starts, the beginning of the first prompt. */
export function titleOf(session) {
  const [first] = (session?.starting?.text ?? "").trim().split("\n");
  return safeLine(session?.title ?? "", 200) || safeLine(first, 60) || UNTITLED;
}

export function editableTitle(app) {
  const words = h("span");
  const button = h(
    "button",
    { type: "button", class: "session-name", title: "Rename", onclick: () => edit() },
    words,
    h("span", { class: "only-read" }, ", rename"),
    icon("edit"),
  );
  const heading = h("h1", null, button);
  let editing = false;

  const show = () => {
    if (editing) return;
    const session = app.session;
    setText(words, session ? titleOf(session) : "Antiphon");
    button.disabled = session === null || session.starting !== null || app.role === "observer";
    button.classList.toggle("untitled", session !== null && !session.title);
  };

  const edit = () => {
    const session = app.session;
    if (session === null) return;
    editing = true;
    const field = h("input", {
      class: "session-name",
      "aria-label": "Title of the session",
      maxlength: 200,
      value: safeLine(session.title ?? "", 200),
      placeholder: UNTITLED,
    });
    const finish = async (save) => {
      if (!editing) return;
      editing = false;
      const title = field.value.trim();
      heading.replaceChildren(button);
      if (save && title && title !== session.title) {
        setText(words, title);
        await app.rename(session.id, title).catch((error) => tell(app, "The session was not renamed", error));
      }
      show();
    };
    on(field, "keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      finish(event.key === "Enter").then(() => button.focus());
      button.focus();
    });
    on(field, "blur", () => finish(true));
    heading.replaceChildren(field);
    field.select();
    field.focus();
  };

  return { heading, show, edit };
}
