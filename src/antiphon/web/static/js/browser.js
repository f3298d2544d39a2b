// What the browser keeps and does for the page: the address, an id for this tab, files to save.

const CLIENT = "antiphon.client";

/** The same for this tab as long as it is open, whatever becomes of its links. */
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
