// Notifications of this browser: permission, showing and closing, the badge, the sound, and Web Push.

import { keep, kept } from "./storage.js";
import { worker } from "./worker.js";

const ICON = "/icon-192.png";
const TONES = [[660, 0], [880, 0.14]];
let audio = null;

const on = (name) => kept(name) === "on";
const set = (name, wanted) => keep(name, wanted ? "on" : null);

/** Whether the browser has notifications here. Pages over plain HTTP have none, but for localhost. */
export function canNotify() {
  return globalThis.isSecureContext === true && "Notification" in globalThis;
}

export function notifies() {
  return on("notify") && canNotify() && Notification.permission === "granted";
}

/** Turn notifications on or off. Asks the browser for the permission, so call it after a click. */
export async function setNotifies(wanted) {
  if (wanted && canNotify() && Notification.permission === "default") await Notification.requestPermission();
  set("notify", wanted && canNotify() && Notification.permission === "granted");
  if (notifies()) await worker();
  return notifies();
}

/** Whether the browser refuses notifications until the user changes its settings. */
export function isBlocked() {
  return canNotify() && Notification.permission === "denied";
}

export async function show({ session, tag, title, text }) {
  const registration = await worker();
  if (registration === null) return;
  const there = await registration.getNotifications({ tag });
  if (there.length) return; // one that was pushed has buttons
  await registration.showNotification(title, { body: text, tag, icon: ICON, data: { session } });
}

export async function close(tags) {
  if (!tags.length || !notifies()) return;
  const registration = await worker();
  for (const notification of (await registration?.getNotifications()) ?? []) {
    if (tags.includes(notification.tag)) notification.close();
  }
}

/** Show a number on the icon of the installed page. */
export function badge(count) {
  const done = count ? navigator.setAppBadge?.(count) : navigator.clearAppBadge?.();
  done?.catch(() => {}); // it is not installed
}

// The sound

export function sounds() {
  return on("sound");
}

/** Turn the sound on or off. It is heard once: browsers play nothing before a click. */
export function setSounds(wanted) {
  set("sound", wanted);
  if (wanted) chime();
}

/** Two short tones. */
export function chime() {
  try {
    audio ??= new AudioContext();
    audio.resume().catch(() => {}); // not before a click
    for (const [pitch, after] of TONES) {
      const start = audio.currentTime + after;
      const tone = new OscillatorNode(audio, { frequency: pitch });
      const volume = new GainNode(audio, { gain: 0 });
      volume.gain.setValueAtTime(0, start);
      volume.gain.linearRampToValueAtTime(0.12, start + 0.02);
      volume.gain.exponentialRampToValueAtTime(0.001, start + 0.3);
      tone.connect(volume).connect(audio.destination);
      tone.start(start);
      tone.stop(start + 0.32);
    }
  } catch {
    // without a sound device
  }
}

// Web Push

/** Why this browser cannot be notified when the page is closed; null if it can. */
export function withoutPush(app) {
  if (app.offers.push !== true) return "This hub has no Web Push. It needs the extra \"push\" of the package.";
  if (app.role === "observer") return "Observers do not get it.";
  if (!canNotify()) return "The page needs HTTPS.";
  return "PushManager" in globalThis ? null : "This browser has no Web Push.";
}

export function pushes() {
  return on("push") && notifies();
}

export async function setPushes(app, wanted) {
  set("push", wanted);
  if (wanted) {
    try {
      await subscribe(app);
    } catch (error) {
      set("push", false);
      throw error;
    }
    return;
  }
  const subscription = await (await worker())?.pushManager.getSubscription();
  if (!subscription) return;
  await app.call("_antiphon/push_unsubscribe", { endpoint: subscription.endpoint });
  await subscription.unsubscribe();
}

/** Tell the hub of the subscription again: its token may be another one since the last login. */
export async function renew(app) {
  if (pushes() && withoutPush(app) === null) await subscribe(app);
}

async function subscribe(app) {
  const { key } = await app.call("_antiphon/push_key", {});
  const registration = await worker();
  if (registration === null) throw new Error("The service worker was not registered.");
  const manager = registration.pushManager;
  const options = { userVisibleOnly: true, applicationServerKey: key };
  let subscription = await manager.getSubscription();
  if (subscription && keyOf(subscription) !== key) {
    await subscription.unsubscribe(); // the hub has another key now
    subscription = null;
  }
  subscription ??= await manager.subscribe(options);
  const { endpoint, keys } = subscription.toJSON();
  await app.call("_antiphon/push_subscribe", { endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } });
}

function keyOf(subscription) {
  const bytes = new Uint8Array(subscription.options.applicationServerKey ?? []);
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
