// The service worker: it shows notifications, and answers questions from them. It is registered once a user
// wants notifications. It serves no files, so that no old version of the page can stay.

const SCRIPT = "/sw.js";
/** A path without pages: the worker controls none. */
const SCOPE = "/notifications/";

const policy = globalThis.trustedTypes?.createPolicy("antiphon-worker", {
  createScriptURL(url) {
    if (url !== SCRIPT) throw new TypeError(`not the service worker: ${url}`);
    return url;
  },
});
let registered = null;

/** The registration, once it is active. Null where the browser has none: the page needs HTTPS or localhost. */
export function worker() {
  if (!globalThis.isSecureContext || !navigator.serviceWorker) return Promise.resolve(null);
  registered ??= register().catch((error) => {
    registered = null;
    console.warn("service worker not registered", error);
    return null;
  });
  return registered;
}

async function register() {
  const url = policy ? policy.createScriptURL(SCRIPT) : SCRIPT;
  const registration = await navigator.serviceWorker.register(url, { scope: SCOPE, updateViaCache: "none" });
  const coming = registration.installing ?? registration.waiting;
  if (!registration.active && coming) {
    await new Promise((resolve) => {
      coming.addEventListener("statechange", () => coming.state === "activated" && resolve());
    });
  }
  return registration;
}

/** Call `listener` with the messages of the worker. */
export function onWorkerMessage(listener) {
  navigator.serviceWorker?.addEventListener("message", (event) => listener(event.data));
  navigator.serviceWorker?.startMessages();
}
