// The handshake with the hub: what the page says of itself, and what the hub says of itself and of this user.

import { ours } from "./fold/content.js";

const VERSION = "0.1.0";
const ASKED = { seq: true, queueUpdates: true, presence: true, sessionUpdates: true, annotations: true };

/** Initialize a connection. `me` has the id and the name of this client. */
export async function sayHello(peer, me) {
  const answer = await peer.request("initialize", {
    protocolVersion: 2,
    info: { name: me.name, title: "Antiphon web", version: VERSION },
    capabilities: { elicitation: { form: {}, url: {} }, _meta: { antiphon: ASKED } },
    _meta: { antiphon: { clientId: me.clientId } },
  });
  if (answer.protocolVersion !== 2) throw new Error("The hub speaks another version of the protocol.");
  const capabilities = answer.capabilities ?? {};
  const { agents } = ours(capabilities._meta);
  const { role = null, sessions = null, cwd = null, clientId = me.clientId } = ours(answer._meta);
  return {
    hub: answer.info ?? null,
    capabilities,
    agents: Array.isArray(agents) ? agents : [],
    role,
    only: sessions,
    cwd,
    clientId,
  };
}
