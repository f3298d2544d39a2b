// The turn: which states a session is in, and what a state update does there. One total table, the engine's.

const TABLE = {
  idle: { running: ["running", "opened"], requires_action: ["requires_action", "opened"],
    idle: ["idle", "repeated"], other: ["unsure", "obscured"] },
  running: { running: ["running", "repeated"], requires_action: ["requires_action", "blocked"],
    idle: ["idle", "ended"], other: ["obscured", "obscured"] },
  requires_action: { running: ["running", "unblocked"], requires_action: ["requires_action", "repeated"],
    idle: ["idle", "ended"], other: ["obscured", "obscured"] },
  unsure: { running: ["running", "opened"], requires_action: ["requires_action", "opened"],
    idle: ["idle", "repeated"], other: ["unsure", "repeated"] },
  obscured: { running: ["running", "unblocked"], requires_action: ["requires_action", "blocked"],
    idle: ["idle", "ended"], other: ["obscured", "repeated"] },
};

export class Turn {
  /** `unsure` and `obscured`: a state we do not know, without and with an open turn (PROMPT-V2-48, -50). */
  state = "idle";
  /** The last state update, whole. */
  latest = null;
  openedAt = null;

  /** Gives what it did: opened, ended, blocked, unblocked, repeated, obscured. */
  apply(update, at) {
    const report = update.state in TABLE.idle && update.state !== "other" ? update.state : "other";
    const [state, effect] = TABLE[this.state][report];
    this.state = state;
    this.latest = update;
    if (effect === "opened") this.openedAt = at ?? null;
    return effect;
  }

  /** As a view shows it: what we do not know is work. */
  get shown() {
    return this.state === "unsure" || this.state === "obscured" ? "running" : this.state;
  }

  get stopReason() {
    if (this.state !== "idle") return null;
    const reason = this.latest?.stopReason ?? this.latest?.stop_reason;
    return typeof reason === "string" ? reason : null;
  }
}
