// The way to a new session: the page without a session, where the composer starts one.

import { closeDrawer } from "./panels.js";

export function newSession(app) {
  if (!app.begins) return;
  closeDrawer();
  app.home();
}
