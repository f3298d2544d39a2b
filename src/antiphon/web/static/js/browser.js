// Functions of the browser: the address, an id for this tab, files to save.

const CLIENT = "antiphon.client";

/** The client id of this tab. It stays the same across reconnects and reloads. */
export function clientId() {
  try {
    const known = sessionStorage.getItem(CLIENT) ?? crypto.randomUUID();
    sessionStorage.setItem(CLIENT, known);
    return known;
  } catch {
    return crypto.randomUUID();
  }
}

/** The session that the address names, or null. */
export function route(hash = location.hash) {
  const found = /^#\/s\/(.+)$/.exec(hash);
  try {
    return found ? decodeURIComponent(found[1]) : null;
  } catch {
    return null;
  }
}

export function saveAs({ name, mimeType, content }) {
  const address = URL.createObjectURL(new Blob([content], { type: mimeType }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
