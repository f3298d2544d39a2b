// An ACP v2 client over stdio, written with the official TypeScript SDK's experimental v2; drive.mjs says what it does.

import { drive } from "./drive.mjs";
import * as speaks from "./speaks_v2.mjs";

await drive(speaks);
