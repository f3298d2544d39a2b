// A view of the session that is shown, whichever it is.

/**
 * Calls `render(session)` now, with every other session that is opened, and with every change of these
 * kinds.
 */
export function follow(app, kinds, render) {
  let stops = [];
  const change = () => {
    for (const stop of stops) stop();
    const session = app.session;
    stops = session === null ? [] : kinds.map((kind) => session.on(kind, () => render(session)));
    render(session);
  };
  app.on("session", change);
  change();
}
