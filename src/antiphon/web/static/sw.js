// The service worker of the page: shows what is pushed, and sends the answer of a button to the hub. It has no
// fetch handler and stores nothing.

const ICON = "/icon-192.png";
const BADGE = "/badge-96.png";
const BUTTONS = [
  ["allow", "Allow"],
  ["deny", "Deny"],
];

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("push", (event) => event.waitUntil(pushed(event.data)));
self.addEventListener("notificationclick", (event) => {
  event.waitUntil(clicked(event.notification, event.action));
});

/** Show a message of the hub, unless a page of the hub is visible, which shows it already. */
async function pushed(data) {
  let message = {};
  try {
    message = data.json();
  } catch {
    // Browsers require a notification for each message.
  }
  if ((await pages()).some((page) => page.visibilityState === "visible")) return;
  const { title = "Antiphon", text = "", details = "", tag, session = null, codes = {} } = message;
  const actions = BUTTONS.filter(([action]) => codes[action]).map(([action, word]) => ({ action, title: word }));
  await self.registration.showNotification(title, {
    body: [text, details].filter(Boolean).join("\n"),
    tag,
    icon: ICON,
    badge: BADGE,
    actions,
    requireInteraction: actions.length > 0,
    data: { session, codes },
  });
}

/** Handle a click on a notification, or on one of its buttons. */
async function clicked(notification, action) {
  notification.close();
  const { session, codes = {} } = notification.data ?? {};
  if (action && codes[action]) await answer(notification, codes[action]);
  else await open(session);
}

async function answer(notification, code) {
  let problem = "The hub cannot be reached.";
  try {
    const answered = await fetch("/answer", {
      method: "POST",
      body: JSON.stringify({ code }),
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
    });
    if (answered.ok) return;
    problem = (await answered.text()).trim();
  } catch {
    // It is shown that the hub was not reached.
  }
  const { session } = notification.data;
  await self.registration.showNotification("Not answered", {
    body: problem.slice(0, 200),
    tag: notification.tag,
    icon: ICON,
    badge: BADGE,
    data: { session },
  });
}

/** Show a session in a page that is open, or in a new one. */
async function open(session) {
  const [page] = await pages();
  if (!page) return self.clients.openWindow(session ? `/#/s/${encodeURIComponent(session)}` : "/");
  if (session) page.postMessage({ type: "open", session });
  return page.focus();
}

function pages() {
  return self.clients.matchAll({ type: "window", includeUncontrolled: true });
}
