// The composer. Enter sends a prompt; while the agent works, a prompt is queued, steers or interrupts.

import { h, on, replace, setLabel, setText } from "../dom.js";
import { follow } from "../follow.js";
import { icon, iconButton } from "../icons.js";
import { keep, kept } from "../storage.js";
import { safeLine } from "../text_safety.js";
import { AttachedFiles } from "./attached_files.js";
import { Delivery } from "./delivery.js";
import { mount as mountEmpty } from "./empty.js";
import { Launch } from "./launch.js";
import { mount as mountOptions } from "./options.js";
import { fileLink, MentionMenu } from "./mention.js";
import { PromptHistory, promptsOf } from "./prompt_history.js";
import { attachedBlock } from "./attachments.js";
import { Resending } from "./resending.js";
import { called, SlashMenu } from "./slash.js";
import { tell } from "./toasts.js";

const LOOKING = "You are an observer: you can watch this session, but not act in it.";

export function mount(app, element) {
  mountEmpty(app, document.getElementById("main"));
  new Composer(app, element);
}

class Composer {
  #history = new PromptHistory();
  #session = undefined;
  #stopping = false;
  #launching = false;

  constructor(app, element) {
    this.app = app;
    this.element = element;
    this.field = h("textarea", {
      id: "prompt",
      rows: 1,
      dir: "auto",
      "aria-label": "Prompt",
      "aria-describedby": "composer-hint",
      autocomplete: "off",
      enterkeyhint: "send",
    });
    this.slash = new SlashMenu(this.field, (command) => this.#complete(command));
    this.mentions = new MentionMenu(this.field, {
      find: (query) => this.#session.findFiles(query),
      choose: (file) => this.#mention(file),
    });
    this.delivery = new Delivery(() => this.show());
    this.attaching = new AttachedFiles(app, () => {
      this.show();
      this.field.focus();
    });
    this.resending = new Resending(() => this.#leaveResending());
    this.attach = iconButton("attach", "Attach files", () => this.attaching.picker.click());
    this.stop = h("button", { type: "button", class: "stop", onclick: () => this.cancel() }, icon("stop"), "Stop");
    this.send = h(
      "button",
      { type: "submit", class: "send primary icon-only", "aria-label": "Send" },
      icon("send"),
    );
    this.hint = h("p", { class: "hint", id: "composer-hint" });
    const options = h("div", { class: "options" });
    mountOptions(app, options);
    this.launch = new Launch(app, () => this.begin(null));
    this.form = h(
      "form",
      { class: "composer", onsubmit: (event) => (event.preventDefault(), this.submit()) },
      this.slash.element,
      this.mentions.element,
      h(
        "div",
        { class: "composer-box" },
        this.resending.element,
        this.attaching.chips,
        this.field,
        h(
          "div",
          { class: "tools" },
          this.attach,
          this.attaching.picker,
          h("span", { class: "spacer" }),
          this.delivery.element,
          this.stop,
          this.send,
        ),
      ),
      h("div", { class: "composer-foot" }, options, this.hint),
      this.launch.element,
    );
    replace(element, this.form);
    this.#listen();
  }

  #listen() {
    on(this.field, "input", () => {
      this.#history.leave();
      this.#changed();
      this.#look();
    });
    on(this.field, "keydown", (event) => this.#key(event));
    for (const type of ["keyup", "pointerup"]) on(this.field, type, () => this.#look());
    on(this.field, "paste", (event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (!files.length) return;
      event.preventDefault();
      this.attaching.add(files);
    });
    const over = (state) => this.form.classList.toggle("over", state);
    const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
    const main = document.getElementById("main");
    on(main, "dragover", (event) => {
      if (!holdsFiles(event) || this.field.disabled) return;
      event.preventDefault();
      over(true);
    });
    on(main, "dragleave", (event) => main.contains(event.relatedTarget) || over(false));
    on(main, "drop", (event) => {
      over(false);
      if (!holdsFiles(event) || this.field.disabled) return;
      event.preventDefault();
      this.attaching.add([...event.dataTransfer.files]);
    });
    follow(this.app, ["state", "commands", "queue"], (session) => this.#follow(session));
    this.app.on("link", () => this.show());
    this.app.on("compose", (what) => this.compose(what));
    this.app.on("stop", () => this.cancel());
  }

  #follow(session) {
    if (session !== this.#session) {
      this.#session = session;
      this.#history.leave();
      this.#stopping = false;
      this.attaching.set([]);
      this.resending.end();
      this.field.value = kept(this.#draft, "");
    }
    if (session?.state === "idle") this.#stopping = false;
    this.show();
  }

  /** Where the text is kept that is not sent yet. */
  get #draft() {
    return `draft.${this.#session?.id ?? "new"}`;
  }

  get working() {
    return Boolean(this.#session) && ["running", "requires_action"].includes(this.#session.state);
  }

  show() {
    const session = this.#session;
    const looking = this.app.role === "observer";
    const offline = this.app.link.state !== "online";
    const launches = session === null;
    this.element.hidden = launches && !this.app.begins;
    this.launch.show(launches);
    if (this.element.hidden) return;
    this.field.disabled = looking;
    setLabel(this.field, "placeholder", looking ? LOOKING : this.#invitation());
    this.attach.hidden = looking;
    this.delivery.show(this.working && !looking, this.app.capabilities);
    this.form.classList.toggle("looking", looking);
    this.stop.hidden = !this.working || looking;
    this.stop.disabled = this.#stopping || offline;
    this.stop.lastChild.data = this.#stopping ? "Stopping…" : "Stop";
    const nothing = !this.field.value.trim() && !this.attaching.all.length;
    this.send.disabled = looking || nothing;
    this.send.hidden = looking;
    const label = this.working
      ? { queue: "Queue", steer: "Steer", interrupt: "Interrupt", agent: "Send" }[this.delivery.way]
      : "Send";
    setLabel(this.send, "aria-label", label);
    setLabel(this.send, "title", `${label} (Enter)`);
    this.slash.update(looking || launches ? [] : session.commands);
    this.#say(offline, looking);
    this.#grow();
  }

  #invitation() {
    if (this.working) return this.delivery.invites;
    if (this.#session === null) return "Write a prompt for a new session";
    return this.#session.commands.length ? "Write a prompt, or / for commands" : "Write a prompt";
  }

  #say(offline, looking) {
    const command = called(this.#session?.commands ?? [], this.field.value);
    let said = "";
    if (looking) said = "";
    else if (offline) said = "Not connected. Your prompt is sent when the connection is back.";
    else if (command?.input?.hint)
      said = `/${safeLine(command.name, 40)}: ${safeLine(command.input.hint, 120)}`;
    else if (this.working && this.field.value) said = this.delivery.says;
    setText(this.hint, said);
  }

  #grow() {
    if (CSS.supports("field-sizing", "content")) return;
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }

  #changed() {
    const text = this.field.value;
    keep(this.#draft, text && text.length < 100_000 ? text : null);
    this.show();
  }

  #set(text) {
    this.field.value = text;
    this.field.setSelectionRange(text.length, text.length);
    this.#changed();
  }

  /** Put a text into the field, with further blocks. `resends` says that it is an earlier prompt. */
  compose({ text, blocks = [], resends = null }) {
    if (this.field.disabled) return;
    this.attaching.set([...this.attaching.all, ...blocks.map(attachedBlock)]);
    if (resends) this.resending.begin(resends);
    this.#set(text);
    this.field.focus();
  }

  #leaveResending() {
    this.resending.end();
    this.attaching.set([]);
    this.#set("");
    this.field.focus();
  }

  /** Look for an @ before the cursor, if the hub can find files. */
  #look() {
    if (this.app.offers.findFiles && this.#session) this.mentions.update();
  }

  #mention(file) {
    this.attaching.attach(fileLink(file));
    this.#changed();
  }

  #complete(command) {
    this.#set(`/${command.name} `);
  }

  #key(event) {
    if (event.isComposing) return;
    if (this.slash.take(event) || this.mentions.take(event)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit();
      return;
    }
    const walks = !this.field.value || this.#history.walking;
    if (!walks || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
    const texts = promptsOf(this.#session?.items ?? []);
    const text =
      event.key === "ArrowUp" ? this.#history.back(texts, this.field.value) : this.#history.forward(texts);
    if (text === null) return;
    event.preventDefault();
    this.field.value = text;
    const end = event.key === "ArrowUp" ? 0 : text.length;
    this.field.setSelectionRange(end, end);
    this.show();
  }

  async submit() {
    if (this.send.disabled) return;
    const session = this.#session;
    const text = this.field.value.trim();
    const attached = this.attaching.all;
    const blocks = [...(text ? [{ type: "text", text }] : []), ...this.attaching.blocks];
    if (session === null) return this.begin(blocks);
    const way = this.working ? this.delivery.way : undefined;
    this.attaching.set([]);
    this.#history.leave();
    this.#set("");
    try {
      const target = await this.resending.target(this.app, session);
      await target.prompt(blocks, target === session ? way : undefined);
    } catch (error) {
      tell(this.app, "The prompt was rejected", error);
      if (this.#session !== session || this.field.value) return;
      this.attaching.set(attached);
      this.#set(text);
    }
  }

  /** Begin a session with the agent and the folder of the row below. */
  async begin(blocks) {
    if (this.#launching) return;
    const written = blocks && this.field.value;
    this.#launching = true;
    const choice = this.launch.ready ?? (await this.launch.choice());
    this.#launching = false;
    if (choice === null || this.#session !== null) return;
    const since = written !== null && this.field.value.startsWith(written) ? this.field.value.slice(written.length) : "";
    if (blocks) this.#set("");
    this.app.starts.begin(choice, blocks);
    if (since) this.#set(since); // it was written while the hub looked at the folder
  }

  async cancel() {
    if (!this.working || this.#stopping || this.app.role === "observer") return;
    this.#stopping = true;
    this.show();
    try {
      await this.#session.cancel();
    } catch (error) {
      this.#stopping = false;
      this.show();
      tell(this.app, "The turn was not stopped", error);
    }
  }
}
