// Set the theme and the panels before the first paint. A classic script, because modules run too late.

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
