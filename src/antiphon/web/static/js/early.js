// Before the first paint: the theme and the panels as they were left. A classic script, since modules come
// too late.

(() => {
  const kept = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  };
  const root = document.documentElement;
  const theme = kept("antiphon.theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  const column = (name, width) => innerWidth >= width && kept(`antiphon.panel.${name}`) !== "closed";
  root.dataset.sessions = column("sessions", 720) ? "open" : "closed";
  root.dataset.side = column("side", 1120) ? "open" : "closed";
})();
