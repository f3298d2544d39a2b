// What an error says: the hub's message, the agent's own words, and what to do. Pure.

import { safeLine, safeText } from "./text_safety.js";

const LONGEST = 4000;

/** Advice for an error, by its code and reason, if the hub gives none. */
export function advice({ code, data } = {}) {
  const reason = data?.reason;
  if (typeof data?.advice === "string") return sentence(data.advice);
  if (reason === "forbidden") return "You are an observer. Ask an owner for a link with another role.";
  if (reason === "limit") return "The hub limits this. Wait a moment and try again.";
  if (reason === "already_delivered") return "The agent already has it. Stop the turn, or send another prompt.";
  if (reason === "unknown_message_id") return "It is no longer in the queue.";
  if (code === -32000) return "Log in to the agent with its own command, on the hub's machine.";
  if (code === -32601) return "This agent cannot do that.";
  return null;
}

/** A line of the hub as a sentence: it begins with a capital letter and ends with a full stop. */
export function sentence(words) {
  const line = safeLine(words, 400);
  const whole = /[.!?…]$/.test(line) || !line ? line : `${line}.`;
  return whole.charAt(0).toUpperCase() + whole.slice(1);
}

/** A message that says nothing, if the agent's own words are there. */
const VAGUE = "Internal error";

/** The parts of an error that people read: `{message, details, stderr, advice}`, each a text or null. */
export function partsOf(error) {
  const data = error?.data && typeof error.data === "object" ? error.data : {};
  const given = safeLine(String(error?.message ?? error), 300);
  const details = text(data.details);
  const message = details && given === VAGUE ? safeLine(details.split("\n")[0], 300) : given;
  const stderr = text(data.stderr);
  return { message, details: details === message ? null : details, stderr, advice: advice(error) };
}

/** What the agent itself wrote, as one text; null if that is not known. */
export function agentWords(error) {
  const { details, stderr } = partsOf(error);
  return [details, stderr].filter(Boolean).join("\n\n") || null;
}

/** An error on one line: its message, and what to do. */
export function failureLine(error) {
  const { message, advice } = partsOf(error);
  return advice ? `${sentence(message)} ${advice}`.trim() : message;
}

/** An error as an `error` event of the app: our title, one line, and the agent's own words for its details. */
export function failureNotice(title, error) {
  return { title, message: failureLine(error), more: agentWords(error) };
}

/** A text of a peer: its end, because the last lines say the most. */
function text(said) {
  const given = Array.isArray(said) ? said.join("\n") : said; // lines, at hubs of earlier versions
  if (typeof given !== "string" || !given.trim()) return null;
  return safeText(given.length > LONGEST ? `…${given.slice(-LONGEST)}` : given).trim();
}
