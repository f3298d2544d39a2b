// Values in the local storage of the browser. If storage is full or forbidden, values are lost silently.

const PREFIX = "antiphon.";

export function kept(key, otherwise = null) {
  try {
    return localStorage.getItem(PREFIX + key) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Store a text, or remove it if it is null. */
export function keep(key, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
  } catch {
    // The value stays in the page until it is closed.
  }
}
