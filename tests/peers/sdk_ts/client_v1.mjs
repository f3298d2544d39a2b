// An ACP v1 client over stdio, written with the official TypeScript SDK; drive.mjs says what it does.

import { drive } from "./drive.mjs";
import * as speaks from "./speaks_v1.mjs";

await drive(speaks);
