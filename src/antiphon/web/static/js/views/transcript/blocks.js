// Content blocks: text, images, sounds, resources and links to them.

import { h, replace, setLabel } from "../../dom.js";
import { safeAddress } from "../../markdown/inline.js";
import { icon } from "../../icons.js";
import { safeLine } from "../../text_safety.js";
import { bytes } from "../../words.js";
import { Prose, codeBlock, link } from "./markdown.js";
import { saveAs } from "../../browser.js";

const IMAGES = /^image\/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;
const SOUNDS = /^audio\/[\w.+-]+$/;
const BASE64 = /^[A-Za-z0-9+/\s]*=*\s*$/;

/** The blocks of a message. The last one may grow. */
export class Blocks {
  element = h("div", { class: "blocks" });
  #views = [];

  set(blocks) {
    blocks.forEach((block, at) => {
      const before = this.#views[at];
      if (block.type === "text" && before?.prose) {
        before.prose.set(block.text);
        return;
      }
      if (before?.block === block) return;
      const view = viewOf(block);
      if (before) before.element.replaceWith(view.element);
      else this.element.append(view.element);
      this.#views[at] = view;
    });
    for (const view of this.#views.splice(blocks.length)) view.element.remove();
  }
}

function viewOf(block) {
  if (block.type === "text") {
    const prose = new Prose();
    prose.set(String(block.text));
    return { prose, element: prose.element };
  }
  return { block, element: drawBlock(block) };
}

export function drawBlock(block) {
  switch (block?.type) {
    case "image": return drawImage(block);
    case "audio": return drawAudio(block);
    case "resource_link": return drawResourceLink(block);
    case "resource": return drawResource(block.resource ?? {});
    case "text": return viewOf(block).element;
    default: return strange(block?.type);
  }
}

/** A note for content that this page cannot show. */
export function strange(type) {
  return h("p", { class: "note" }, `Content of an unknown kind: ${safeLine(type, 60)}`);
}

/** An image from the data of the update. Nothing is fetched from an address of the agent. */
function drawImage({ data, mimeType, uri }) {
  if (!IMAGES.test(mimeType ?? "") || typeof data !== "string" || !BASE64.test(data.slice(0, 4096))) {
    return chip("image", safeLine(uri || "image", 200), safeLine(mimeType ?? "", 60));
  }
  const image = h("img", { src: `data:${mimeType};base64,${data}`, alt: safeLine(uri ?? "An image", 200),
    loading: "lazy", decoding: "async" });
  const button = h("button", { type: "button", class: "zoom", "aria-expanded": "false", "aria-label":
    `Enlarge ${image.alt}`, onclick: () => {
    const open = figure.classList.toggle("open");
    button.setAttribute("aria-expanded", String(open));
  } }, image);
  const figure = h("figure", { class: "picture" }, button);
  const fail = () => replace(figure, chip("image", "This image cannot be shown", mimeType));
  image.addEventListener("error", fail);
  return figure;
}

function drawAudio({ data, mimeType }) {
  const known = SOUNDS.test(mimeType ?? "") && typeof data === "string";
  if (!known) return chip("file", "A sound", safeLine(mimeType, 60));
  const src = `data:${mimeType};base64,${data}`;
  return h("audio", { controls: true, preload: "none", src, "aria-label": "A sound" });
}

function drawResourceLink({ name, title, uri, description, size, mimeType }) {
  const details = [mimeType, Number.isFinite(size) ? bytes(size) : null].filter(Boolean).join(" · ");
  const words = safeLine(title || name || uri || "", 200);
  const made = chip("file", words, safeLine(details || description || "", 200), safeAddress(uri));
  setLabel(made, "title", safeLine(uri ?? "", 400));
  return made;
}

function drawResource({ uri, text, blob, mimeType }) {
  const name = safeLine(uri ?? "", 200);
  if (typeof text === "string") {
    return h("details", { class: "resource" }, h("summary", null, icon("file"), h("span", null, name)),
      codeBlock(text, mimeType ?? ""));
  }
  const save = () => saveBlob(blob, mimeType, uri);
  return h("button", { type: "button", class: "chip", onclick: save, title: `Save ${name}` }, icon("export"),
    h("span", { class: "chip-name" }, name),
    h("span", { class: "chip-note" }, safeLine(mimeType ?? "", 60)));
}

function saveBlob(blob, mimeType, uri) {
  const binary = atob(blob ?? "");
  const content = Uint8Array.from(binary, (char) => char.charCodeAt(0));
  const name = safeLine(String(uri ?? "").split(/[\\/]/).at(-1) || "resource", 80);
  saveAs({ name, mimeType: mimeType ?? "application/octet-stream", content });
}

function chip(drawn, name, note, href = null) {
  const inside = [icon(drawn), h("span", { class: "chip-name" }, name),
    note ? h("span", { class: "chip-note" }, note) : null];
  return href ? link(href, inside, "chip") : h("span", { class: "chip" }, inside);
}
