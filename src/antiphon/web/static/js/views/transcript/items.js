// The view of an item, its estimated height, and its text for the search.

import { EndView } from "./end.js";
import { CompactionView, NoteView, NoticeView, SubagentView, WorkView } from "./marks.js";
import { MessageView, ThoughtView, UnsentView } from "./message.js";
import { ToolView } from "./tool.js";

const VIEWS = {
  tool: ToolView, end: EndView, notice: NoticeView, compaction: CompactionView, subagent: SubagentView,
  note: NoteView, unsent: UnsentView, work: WorkView, user: MessageView, agent: MessageView,
  thought: ThoughtView,
};

export function viewOf(item, around) {
  return new VIEWS[item.role ?? item.kind](item, around);
}

const GUESSES = { tool: 48, end: 40, notice: 48, compaction: 44, subagent: 48, note: 90, unsent: 90,
  work: 40 };

/** An estimated height. Rows are measured when they are drawn. */
export function guess(item) {
  if (item.kind !== "message") return GUESSES[item.kind] ?? 48;
  if (item.role === "thought") return 44;
  const letters = item.blocks.reduce((sum, block) => sum + (block.text?.length ?? 400), 0);
  return 56 + 24 * Math.ceil(Math.min(letters, 36_000) / 90);
}

/** The texts of an item, for the search. */
export function* textsOf(item, terminals) {
  if (item.text) yield item.text;
  if (item.title) yield item.title;
  if (item.description) yield item.description;
  if (item.error?.message) yield item.error.message;
  for (const part of item.kind === "tool" ? item.content : []) {
    if (part?.type === "content" && part.content?.type === "text") yield part.content.text;
    else if (part?.type === "diff" && part.patch?.text) yield part.patch.text;
    else if (part?.type === "terminal") yield terminals.get(part.terminalId)?.output ?? "";
  }
}
