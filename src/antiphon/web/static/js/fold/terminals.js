// Terminals: what an agent's own terminals show, byte by byte.

import { patchFields, patchMeta } from "./content.js";

const STRAY = /[^A-Za-z0-9+/=]/g;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export class Terminal {
  version = 0;
  command = null;
  cwd = null;
  exitStatus = null;
  size = null;
  capabilities = null;
  meta = {};
  /** Whether any output was ever reported. */
  reported = false;
  /** Another number, another output from its beginning. */
  generation = 0;
  #text = "";
  #tail = new Uint8Array();

  constructor(id) {
    this.id = id;
    this.key = `terminal/${id}`;
  }

  /** The output as text; a character that was cut between chunks is whole again (TERMV2-05). */
  get output() {
    return this.#tail.length ? this.#text + decoder.decode(this.#tail) : this.#text;
  }

  get exited() {
    return this.exitStatus !== null; // TERMV2-06: whatever it says
  }

  get exitCode() {
    return this.exitStatus?.exitCode ?? null;
  }

  get signal() {
    return this.exitStatus?.signal ?? null;
  }

  append(data) {
    const bytes = decoded(data);
    if (!bytes) return;
    this.reported = true;
    this.#add(bytes);
    this.version += 1;
  }

  patch(update) {
    patchFields(this, update, { command: null, cwd: null, exitStatus: null, size: null, capabilities: null });
    if (update.output === null) this.#reset(false);
    else if (update.output !== undefined) {
      const bytes = decoded(update.output.data);
      if (bytes) {
        this.#reset(true); // TERMV2-04
        this.#add(bytes);
      }
    }
    this.meta = patchMeta(this.meta, update._meta);
    this.version += 1;
  }

  #reset(reported) {
    this.reported = reported;
    this.generation += 1;
    this.#text = "";
    this.#tail = new Uint8Array();
  }

  #add(bytes) {
    let all = bytes;
    if (this.#tail.length) {
      all = new Uint8Array(this.#tail.length + bytes.length);
      all.set(this.#tail);
      all.set(bytes, this.#tail.length);
    }
    const end = wholeUpTo(all);
    this.#text += decoder.decode(all.subarray(0, end));
    this.#tail = all.slice(end);
  }
}

/** Where the bytes end that make whole characters, as far as can be told from the last three. */
function wholeUpTo(bytes) {
  for (let back = 1; back <= 3 && back <= bytes.length; back += 1) {
    const byte = bytes[bytes.length - back];
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
      return length > back ? bytes.length - back : bytes.length;
    }
    if (byte < 0x80) break;
  }
  return bytes.length;
}

/** The bytes of a chunk, or null: what is not base64 is skipped, and what was there stays. */
function decoded(data) {
  try {
    const letters = data.replace(STRAY, "");
    if (letters.length % 4) return null;
    const binary = atob(letters);
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
    return bytes;
  } catch {
    return null;
  }
}
