// Notifications: when the page is hidden, the user hears of questions and of turns that end. And their settings.

import { listNews, questionNews, waitingElsewhere } from "../attention.js";
import { ask } from "../dialog.js";
import { h, replace, setText } from "../dom.js";
import { failureLine } from "../failure.js";
import { follow } from "../follow.js";
import * as notifications from "../notifications.js";
import { onWorkerMessage, worker } from "../worker.js";

export function mount(app) {
  const states = new Map();
  const questions = new Map();

  const tell = (news) => {
    if (!document.hidden || !news.length) return;
    if (notifications.sounds()) notifications.chime();
    if (!notifications.notifies()) return;
    // A question in a session that is not shown has no id here: a pushed notification has it, and buttons.
    const shown = news.filter(({ tag }) => !(notifications.pushes() && tag.endsWith("/waits")));
    for (const each of shown) notifications.show(each).catch((error) => console.warn("not notified", error));
  };
  const close = (tags) => notifications.close(tags).catch(() => {}); // it is closed by hand
  const count = () => {
    const open = app.session?.questions.filter((question) => question.state === "open").length ?? 0;
    notifications.badge(open + waitingElsewhere(app.sessions, app.session?.id));
  };

  app.on("sessions", () => {
    const { session } = app;
    const { news, ended } = listNews(states, app.sessions, session?.id);
    tell(news.filter((each) => !(each.kind === "turn" && each.session === session?.id && isCancelled(session))));
    close(ended);
    count();
  });
  follow(app, ["questions"], (session) => {
    if (session !== null) {
      if (!questions.has(session.id)) questions.set(session.id, new Set());
      const { news, ended } = questionNews(questions.get(session.id), session);
      tell(news);
      close(ended);
    }
    count();
  });
  app.on("link", () => {
    if (app.link.state === "online") notifications.renew(app).catch((error) => console.warn("push", error));
  });
  onWorkerMessage((message) => {
    if (message?.type === "open" && typeof message.session === "string") app.open(message.session);
  });
  if (notifications.notifies()) worker();
}

const isCancelled = (session) => session.stopReason === "cancelled";

/** The dialog with the settings. */
export function showNotificationSettings(app) {
  return ask({
    title: "Notifications",
    body: () => {
      const place = h("div", { class: "notifying" });
      const paint = (problem) => replace(place, settings(app, paint, problem));
      paint();
      return place;
    },
  });
}

function settings(app, paint, problem) {
  const why = notifications.withoutPush(app);
  const on = notifications.notifies();
  const run = (act) => async (event) => {
    const { id, checked } = event.target;
    try {
      await act(checked);
      paint();
    } catch (error) {
      paint(failureLine(error));
    }
    document.getElementById(id)?.focus(); // it was drawn anew
  };
  const warning = h("p", { class: "problem", role: "alert", hidden: !problem });
  setText(warning, problem ?? "");
  return [
    h(
      "fieldset",
      { class: "field" },
      h("legend", null, "In this browser"),
      h(
        "div",
        { class: "marks" },
        choice({
          id: "notify",
          title: "Show notifications",
          note: ofPermission(),
          checked: on,
          disabled: !notifications.canNotify() || notifications.isBlocked(),
          run: run(async (wanted) => {
            if (!wanted && notifications.pushes()) await notifications.setPushes(app, false);
            await notifications.setNotifies(wanted);
          }),
        }),
        choice({
          id: "push",
          title: "Also when this page is closed",
          note: why ?? "By Web Push. Questions have the buttons Allow and Deny.",
          checked: why === null && notifications.pushes(),
          disabled: why !== null || !on,
          run: run((wanted) => notifications.setPushes(app, wanted)),
        }),
        choice({
          id: "sound",
          title: "Play a sound",
          note: "Two short tones, while the page is hidden",
          checked: notifications.sounds(),
          run: run(notifications.setSounds),
        }),
      ),
    ),
    warning,
  ];
}

function ofPermission() {
  if (!notifications.canNotify()) return "The page needs HTTPS.";
  if (notifications.isBlocked()) return "The browser blocks them. Allow them in its settings for this page.";
  return "When the agent asks, or a turn ends, while this page is hidden";
}

function choice({ id, title, note, checked, disabled = false, run }) {
  return h(
    "label",
    null,
    h("input", { type: "checkbox", id: `setting-${id}`, checked, disabled, onchange: run }),
    h("span", null, title, h("small", null, note)),
  );
}
