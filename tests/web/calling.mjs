// Calls what modules of the page export: a line in is {module, name, args}, a line out {result} or {error}.

import { createInterface } from "node:readline";

const ROOT = new URL("../../src/antiphon/web/static/js/", import.meta.url);

for await (const line of createInterface({ input: process.stdin })) {
  const { module, name, args } = JSON.parse(line);
  try {
    const exported = (await import(new URL(module, ROOT)))[name];
    const result = typeof exported === "function" ? exported(...args) : exported;
    console.log(JSON.stringify({ result: result ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
