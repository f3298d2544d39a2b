// Files of a prompt: images and sounds as such, others as resources, as far as the agent accepts them.

import { safeLine } from "../text_safety.js";
import { bytes } from "../words.js";

/** Bytes of all files of a prompt. A frame of the hub has at most 16 MiB, and base64 adds a third. */
export const LIMIT = 8 * 1024 * 1024;
const PLAIN = /^(text\/|application\/(json|xml|javascript|x-sh|toml|yaml|x-yaml|sql)\b)|\+(json|xml)$/;
const PLAIN_NAMES = new RegExp(
  "\\.(md|txt|py|js|mjs|ts|tsx|jsx|css|html?|json|toml|ya?ml|rs|go|c|h|cc|cpp|hpp|java|rb|sh|sql|csv|log" +
    "|ini|cfg|xml|svg|diff|patch)$",
  "i",
);

/** The kinds of content that a prompt may have. Pure. */
export function abilities(capabilities) {
  const prompt = capabilities?.session?.prompt ?? capabilities?.promptCapabilities ?? {};
  const has = (name) => Boolean(prompt[name]);
  return { image: has("image"), audio: has("audio"), embedded: has("embeddedContext") };
}

/** How a file is sent to the agent, or why it is refused. Pure. */
export function wayFor({ type, name, size }, able, already = 0) {
  if (size + already > LIMIT) return { refused: `All files together may be at most ${bytes(LIMIT)}` };
  if (type.startsWith("image/") && able.image && type !== "image/svg+xml") return { kind: "image" };
  if (type.startsWith("audio/") && able.audio) return { kind: "audio" };
  const plain = PLAIN.test(type) || PLAIN_NAMES.test(name);
  if (able.embedded) return { kind: plain ? "text" : "blob" };
  if (plain) return { kind: "quoted" };
  const what = type.startsWith("image/")
    ? "images"
    : type.startsWith("audio/")
      ? "sounds"
      : "files of this kind";
  return { refused: `This agent does not accept ${what}` };
}

/** A block that is part of a prompt already, such as one of an earlier prompt, as an attached file. Pure. */
export function attachedBlock(block) {
  const { type } = block;
  const uri = block.uri ?? block.resource?.uri ?? "";
  const name = safeLine(block.title || block.name || String(uri).split(/[\\/]/).at(-1) || type, 120);
  const size = Math.floor(((block.data ?? block.resource?.blob ?? "").length * 3) / 4);
  return { name, size: size || (block.resource?.text?.length ?? 0), kind: type, block };
}

async function base64(file) {
  const bytesOf = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytesOf.length; at += 0x8000)
    binary += String.fromCharCode(...bytesOf.subarray(at, at + 0x8000));
  return btoa(binary);
}

/** Make `{name, size, block}` of a file. Throws an Error that says why it is refused. */
export async function attachment(file, able, already) {
  const name = safeLine(file.name || "pasted", 120);
  const type = file.type || "application/octet-stream";
  const way = wayFor({ type, name, size: file.size }, able, already);
  if (way.refused) throw new Error(`${name}: ${way.refused}`);
  const uri = `file:///${encodeURIComponent(file.name || "pasted")}`;
  const made = {
    image: async () => ({ type: "image", data: await base64(file), mimeType: type }),
    audio: async () => ({ type: "audio", data: await base64(file), mimeType: type }),
    text: async () => ({ type: "resource", resource: { uri, mimeType: type, text: await file.text() } }),
    blob: async () => ({ type: "resource", resource: { uri, mimeType: type, blob: await base64(file) } }),
    quoted: async () => ({ type: "text", text: quoted(name, await file.text()) }),
  };
  return { name, size: file.size, kind: way.kind, block: await made[way.kind]() };
}

/** A file as part of the text, in a code block that nothing in it can close. Pure. */
export function quoted(name, text) {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `\n${name}:\n\n${fence}\n${text.replace(/\n$/, "")}\n${fence}\n`;
}
