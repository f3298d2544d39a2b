// The files that are attached to a prompt, as chips above it.

import { h, replace } from "../dom.js";
import { icon, iconButton } from "../icons.js";
import { bytes } from "../words.js";
import { abilities, attachment } from "./attachments.js";
import { tell } from "./toasts.js";

export class AttachedFiles {
  all = [];

  /** `changed` is called when the files change. */
  constructor(app, changed) {
    this.app = app;
    this.changed = changed;
    this.chips = h("ul", { class: "chips", "aria-label": "Attached files", hidden: true });
    this.picker = h("input", {
      type: "file",
      multiple: true,
      hidden: true,
      tabindex: "-1",
      onchange: () => {
        this.add([...this.picker.files]);
        this.picker.value = "";
      },
    });
  }

  get blocks() {
    return this.all.map((each) => each.block);
  }

  async add(files) {
    const all = [...this.all];
    for (const file of files) {
      const already = all.reduce((sum, each) => sum + each.size, 0);
      try {
        all.push(await attachment(file, abilities(this.app.capabilities), already));
      } catch (error) {
        tell(this.app, "The file was not attached", error);
      }
    }
    this.set(all);
    this.changed();
  }

  /** Attach what is a block already; the same file only once. */
  attach(file) {
    if (!file.block.uri || this.all.every((each) => each.block.uri !== file.block.uri)) this.set([...this.all, file]);
  }

  set(all) {
    this.all = all;
    this.chips.hidden = all.length === 0;
    replace(
      this.chips,
      all.map((each) => this.#chip(each)),
    );
  }

  #chip(each) {
    const remove = () => {
      this.set(this.all.filter((other) => other !== each));
      this.changed();
    };
    return h(
      "li",
      null,
      icon(each.kind === "image" ? "image" : "file"),
      h("span", null, each.name),
      each.size ? h("small", null, bytes(each.size)) : null,
      iconButton("close", `Remove ${each.name}`, remove),
    );
  }
}
