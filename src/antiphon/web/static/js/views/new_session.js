// The dialog for a new session: folder and agent.

import { ask } from "../dialog.js";
import { h } from "../dom.js";
import { safeLine } from "../text_safety.js";
import { keep, kept } from "../storage.js";
import { closeDrawer } from "./panels.js";
import { tell } from "./toasts.js";

/** The folders of the sessions, the latest first, as suggestions. Pure. */
export function foldersOf(sessions) {
  const byTime = [...sessions].sort((one, two) =>
    String(two.updatedAt ?? "").localeCompare(String(one.updatedAt ?? "")),
  );
  return [...new Set(byTime.map((entry) => entry.cwd).filter(Boolean))].slice(0, 12);
}

export async function newSession(app) {
  if (!app.begins) return;
  const folders = foldersOf(app.sessions);
  const chosen = await ask({ title: "New session", body: (close) => form(app, folders, close) });
  if (chosen === null) return;
  keep("agent", chosen.agent ?? null);
  await begin(app, chosen);
}

/** Create a session and open it. Resolves to the session, or null if that failed. */
export async function begin(app, options) {
  try {
    await app.create(options);
    closeDrawer();
    return app.session;
  } catch (error) {
    tell(app, "The session was not created", error);
    return null;
  }
}

function form(app, folders, close) {
  const folder = h("input", {
    name: "cwd",
    required: true,
    spellcheck: "false",
    autocomplete: "off",
    list: "folders",
    value: app.session?.cwd ?? folders[0] ?? app.cwd ?? "/",
    "aria-describedby": "folder-note",
  });
  const agents =
    app.agents.length > 1
      ? h(
          "select",
          { name: "agent" },
          app.agents.map((name) =>
            h("option", { value: name, selected: name === kept("agent") }, safeLine(name, 60)),
          ),
        )
      : null;
  return h(
    "form",
    {
      onsubmit: (event) => {
        event.preventDefault();
        close({ cwd: folder.value.trim(), agent: agents?.value });
      },
    },
    h("label", { class: "field" }, h("span", null, "Folder"), folder),
    h(
      "datalist",
      { id: "folders" },
      folders.map((path) => h("option", { value: path })),
    ),
    h(
      "p",
      { class: "note", id: "folder-note" },
      "An absolute path on the hub's machine. The agent works there.",
    ),
    agents ? h("label", { class: "field" }, h("span", null, "Agent"), agents) : null,
    h(
      "footer",
      null,
      h("button", { type: "button", onclick: () => close() }, "Cancel"),
      h("button", { type: "submit", class: "primary" }, "Create"),
    ),
  );
}
