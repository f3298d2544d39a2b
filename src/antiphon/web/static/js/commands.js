// The commands of the page, for the palette and for single keys.

import { failureNotice } from "./failure.js";
import { addAgent } from "./views/agent_menu.js";
import { archiveSession, removeSession, showArchived } from "./views/session_acts.js";
import { invite, mayInvite } from "./views/invite.js";
import { showKeys } from "./views/keys_list.js";
import { newSession } from "./views/new_session.js";
import { showNotices } from "./views/notices.js";
import { showNotificationSettings } from "./views/notifications.js";
import { isOpen, setPanel, togglePanel } from "./views/panels.js";
import { hasTour, tour } from "./views/recent.js";
import { canSearch, openSearch } from "./views/search.js";
import { setTheme } from "./views/theme.js";

/**
 * The commands: `{id, title, keys?, when?(state), run()}`. `keys` is one key, which works while nobody writes.
 * `state` is what `stateOf` returns.
 */
export function commandsOf(app) {
  const { session } = app;
  const inSession = (state) => state.session !== null && !state.starting;
  const owns = (state) => inSession(state) && state.role === "owner";
  const tab = (name) => () => app.emit("tab", name);
  const find = () => {
    if (!isOpen("sessions")) setPanel("sessions", true);
    document.getElementById("find")?.focus();
  };
  return [
    { id: "new-session", title: "New session", keys: "n", when: (state) => state.begins, run: () => newSession(app) },
    { id: "find-session", title: "Find a session", keys: "/", run: find },
    { id: "search", title: "Search the contents of all sessions", keys: "s", when: () => canSearch(app),
      run: () => openSearch(app) },
    { id: "write", title: "Write a prompt", keys: "c", run: () => document.getElementById("prompt")?.focus() },
    { id: "stop", title: "Stop the turn", when: (state) => state.working, run: () => app.emit("stop") },
    { id: "rename", title: "Rename the session", when: (state) => inSession(state) && state.acts,
      run: () => app.emit("rename") },
    { id: "fork", title: "Fork the session", when: (state) => inSession(state) && state.begins,
      run: () => app.fork(session.id).catch((error) => app.emit("error", failureNotice("The session was not forked", error))) },
    { id: "invite", title: "Invite somebody to the session", when: (state) => inSession(state) && mayInvite(app),
      run: () => invite(app) },
    { id: "archive", title: "Archive the session", when: owns, run: () => archiveSession(app, session.id) },
    { id: "delete", title: "Delete the session", when: owns, run: () => removeSession(app, session.id) },
    { id: "archived", title: "Show archived sessions", run: () => showArchived(app) },
    { id: "plan", title: "Show the plan", keys: "p", when: inSession, run: tab("plan") },
    { id: "files", title: "Show the files", keys: "f", when: inSession, run: tab("files") },
    { id: "changes", title: "Show all changes of the session", keys: "d", when: inSession,
      run: () => app.emit("changes", {}) },
    { id: "timeline", title: "Show the timeline", keys: "t", when: inSession, run: tab("timeline") },
    { id: "people", title: "Show the people", keys: "w", when: inSession, run: tab("people") },
    { id: "sessions-panel", title: "Show or hide the sessions", keys: "[", run: () => togglePanel("sessions") },
    { id: "side-panel", title: "Show or hide the side panel", keys: "]", run: () => togglePanel("side") },
    { id: "tour", title: "Take the tour", when: () => hasTour(app), run: () => tour(app) },
    { id: "add-agent", title: "Add an agent", when: () => app.agentList.mayAdd, run: () => addAgent(app) },
    { id: "notices", title: "Show the notices of this page", run: () => showNotices(app) },
    { id: "notifications", title: "Set up notifications", run: () => showNotificationSettings(app) },
    { id: "theme-light", title: "Theme: light", run: () => setTheme("light") },
    { id: "theme-dark", title: "Theme: dark", run: () => setTheme("dark") },
    { id: "theme-system", title: "Theme: as the system", run: () => setTheme("system") },
    { id: "keys", title: "Show all keys", keys: "?", run: () => showKeys() },
  ];
}

/** What `when` gets. */
export function stateOf(app) {
  const { session } = app;
  return {
    session,
    starting: session !== null && session.starting !== null,
    working: session !== null && ["running", "requires_action"].includes(session.state),
    role: app.role,
    acts: app.role !== "observer",
    begins: app.begins,
  };
}

/** The commands that can run now. */
export function availableCommands(app) {
  const state = stateOf(app);
  return commandsOf(app).filter((command) => command.when?.(state) ?? true);
}
