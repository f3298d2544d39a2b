// The bar above the session: title, state, people, usage and menus.

import { waitingElsewhere, withCount } from "../attention.js";
import { saveAs } from "../browser.js";
import { h, replace, setLabel, setText } from "../dom.js";
import { follow } from "../follow.js";
import { icon, iconButton } from "../icons.js";
import { opensMenu } from "../menu.js";
import { safeLine } from "../text_safety.js";
import { initials, shortPath } from "../words.js";
import { invite, mayInvite } from "./invite.js";
import { linkMark } from "./link.js";
import { noticesButton } from "./notices.js";
import { showNotificationSettings } from "./notifications.js";
import { isDrawer, isOpen, mount as mountPanels, onPanels, togglePanel } from "./panels.js";
import { stateMark, stateOf } from "./state.js";
import { theme, themeItems } from "./theme.js";
import { editableTitle, titleOf } from "./title.js";
import { archiveSession, mayRemove, removeSession } from "./session_acts.js";
import { tell } from "./toasts.js";
import { usageMark } from "./usage.js";

const FACES = 4;

export function mount(app, element) {
  mountPanels(document.getElementById("page"));
  const title = editableTitle(app);
  const state = h("span", { class: "now", role: "status" });
  const place = h("span", { class: "place" });
  const usage = h("span", { class: "usage-place" });
  const people = h("button", {
    type: "button",
    class: "faces quiet",
    onclick: () => app.emit("tab", "people"),
  });
  const look = h("button", { type: "button", class: "quiet icon-only look", title: "Theme" });
  const bell = iconButton("bell", "Notifications", () => showNotificationSettings(app), { kind: "look" });
  const more = iconButton("other", "Session", null, { kind: "of-session" });

  replace(
    element,
    panelButton("sessions", "panelLeft", "Sessions", "["),
    h("div", { class: "what" }, title.heading, h("div", { class: "under" }, state, place)),
    h("span", { class: "spacer" }),
    ...linkMark(app),
    usage,
    noticesButton(app),
    people,
    bell,
    look,
    more,
    panelButton("side", "panelRight", "About this session", "]", "of-session"),
  );

  const paintLook = () => {
    replace(look, icon(theme()));
    setLabel(look, "aria-label", `Theme: ${theme()}`);
  };
  const looks = () => themeItems().map((item) => ({ ...item, run: () => (item.run(), paintLook()) }));
  opensMenu(look, looks, { label: "Theme" });
  opensMenu(more, () => sessionItems(app, title, looks), { label: "Session" });
  paintLook();

  follow(app, ["state", "info"], (session) => {
    title.show();
    more.disabled = session === null || session.starting !== null;
    const shown = session?.state ?? "";
    if (state.dataset.state !== shown) replace(state, session ? stateMark(session.state) : null);
    state.dataset.state = shown;
    setText(place, session?.cwd ? shortPath(session.cwd) : "");
    setLabel(place, "title", safeLine(session?.cwd ?? "", 400));
  });
  follow(app, ["usage"], (session) => replace(usage, usageMark(session?.usage ?? null)));
  follow(app, ["presence"], (session) => paintPeople(people, session?.clients ?? []));
  const showTitle = () => {
    const elsewhere = waitingElsewhere(app.sessions, app.session?.id);
    setText(document.querySelector("title"), pageTitle(app.session, elsewhere));
  };
  follow(app, ["questions", "state", "info"], showTitle);
  app.on("sessions", title.show);
  app.on("rename", title.edit);
  app.on("sessions", showTitle);
}

/** The title of the browser tab, with the number of questions here and in other sessions. Pure. */
export function pageTitle(session, elsewhere = 0) {
  if (!session) return withCount(elsewhere, "Antiphon");
  const waits = session.questions.filter((question) => question.state === "open").length;
  const first = waits ? "Question" : session.state === "running" ? stateOf("running").word : null;
  return withCount(waits + elsewhere, [first, titleOf(session), "Antiphon"].filter(Boolean).join(" · "));
}

function panelButton(name, drawn, label, key, kind) {
  const more = { kind, title: `${label} (${key})`, "aria-controls": name };
  const button = iconButton(drawn, label, () => togglePanel(name), more);
  const show = () => {
    button.setAttribute("aria-expanded", String(isOpen(name)));
    button.classList.toggle("on", isOpen(name) && !isDrawer(name));
  };
  onPanels(show);
  show();
  return button;
}

function paintPeople(button, clients) {
  button.hidden = clients.length === 0;
  const names = clients.map((client) => `${safeLine(client.name, 64)}${client.you ? " (you)" : ""}`);
  setLabel(button, "aria-label", `${clients.length} here: ${names.join(", ")}`);
  setLabel(button, "title", names.join("\n"));
  replace(
    button,
    clients.slice(0, FACES).map((client) => face(client)),
    clients.length > FACES ? h("span", { class: "face rest" }, `+${clients.length - FACES}`) : null,
  );
}

export function face(client) {
  return h("span", { class: ["face", client.you && "you"], "aria-hidden": "true" }, initials(client.name));
}

function sessionItems(app, title, looks) {
  const { id } = app.session;
  const save = (format) => async () => {
    try {
      saveAs(await app.call("_antiphon/transcript", { sessionId: id, format }));
    } catch (error) {
      tell(app, "The transcript was not exported", error);
    }
  };
  const fork = () => app.fork(id).catch((error) => tell(app, "The session was not forked", error));
  return [
    app.role !== "observer" && { label: "Rename", icon: icon("edit"), run: title.edit },
    app.begins && { label: "Fork from here", icon: icon("fork"), run: fork },
    mayInvite(app) && { label: "Invite…", icon: icon("people"), run: () => invite(app) },
    { label: "Copy link", icon: icon("copy"), run: () => copyLink(app) },
    "Export",
    { label: "As Markdown", icon: icon("export"), run: save("markdown") },
    { label: "As HTML", icon: icon("export"), run: save("html") },
    ...(mayRemove(app)
      ? [
          "This session",
          { label: "Archive", icon: icon("archive"), run: () => archiveSession(app, id) },
          { label: "Delete", icon: icon("delete"), run: () => removeSession(app, id) },
        ]
      : []),
    ...(isDrawer("sessions") ? [notificationItem(app), "Theme", ...looks()] : []),
  ].filter(Boolean);
}

function notificationItem(app) {
  return { label: "Notifications…", icon: icon("bell"), run: () => showNotificationSettings(app) };
}

async function copyLink(app) {
  try {
    await navigator.clipboard.writeText(location.href);
    app.emit("told", {
      title: "Link copied",
      message: "It opens this session for users who are logged in to this hub.",
    });
  } catch (error) {
    tell(app, "The link was not copied", error);
  }
}
