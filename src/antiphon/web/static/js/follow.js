// Views that follow the session that is shown.

/**
 * Call `render(session)` now, whenever another session is shown, and at every change of these kinds.
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
