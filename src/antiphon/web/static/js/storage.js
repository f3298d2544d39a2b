// What the browser keeps for this page. Storage may be full or forbidden: then it is forgotten, and nothing
// breaks.

const PREFIX = "antiphon.";

export function kept(key, otherwise = null) {
  try {
    return localStorage.getItem(PREFIX + key) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Keeps a text, or forgets it where it is null. */
export function keep(key, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
  } catch {
    // Kept for this page only, in what shows it.
  }
}
