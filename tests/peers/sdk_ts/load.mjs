// Finds the official TypeScript SDK outside of this folder.
//
// ES modules ignore NODE_PATH and look for packages beside the importing file only. So the folder that
// holds `node_modules` (what `install.ts_sdk()` returns) comes in the environment variable ACP_TS_SDK; without
// it, the project's own cache folder is taken. The package's file is resolved from there and imported by URL.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const project = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
export const folder = process.env.ACP_TS_SDK ?? join(project, ".cache", "peers", "ts-sdk-2.4.0");

/** Imports an entry point of the SDK: "" for v1, "/experimental/v2" for v2. */
export function loadSdk(entry) {
  const require = createRequire(join(folder, "package.json"));
  return import(pathToFileURL(require.resolve(`@agentclientprotocol/sdk${entry}`)).href);
}
