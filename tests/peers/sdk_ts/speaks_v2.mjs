// What a v2 client is in the words of the official TypeScript SDK's experimental v2; see speaks_v1.mjs.
//
// A prompt of it ends when it is answered with a message id and, after some state that is not idle, the
// session is idle again.

import { loadSdk } from "./load.mjs";

const acp = await loadSdk("/experimental/v2");
export const lines = acp.ndJsonStream;
const { agent: toAgent, client: methods } = acp.methods;

export function connect(stream, handlers) {
  let turn; // { active, ended } while a prompt is under way
  const update = ({ params: { update } }) => {
    handlers.update(update);
    if (turn === undefined || update.sessionUpdate !== "state_update") return;
    if (update.state !== "idle") turn.active = true;
    else if (turn.active) turn.ended(update.stopReason);
  };

  const connection = acp
    .client({ name: "sdk-ts-client-v2" })
    .onNotification(methods.session.update, update)
    .onRequest(methods.session.requestPermission, ({ params: { subject, options } }) =>
      handlers.permission({ toolCallId: subject?.toolCall?.toolCallId, options }),
    )
    .connect(stream);
  const { agent } = connection;

  return {
    async initialize() {
      const answer = await agent.request(toAgent.initialize, {
        protocolVersion: acp.PROTOCOL_VERSION,
        info: { name: "sdk-ts-client-v2", version: "1.0.0" },
        capabilities: {},
      });
      return { protocolVersion: answer.protocolVersion, agent: answer.info.name };
    },
    async newSession(cwd, _meta) {
      return (await agent.request(toAgent.session.new, { cwd, mcpServers: [], ...(_meta && { _meta }) })).sessionId;
    },
    joinSession: (sessionId, cwd) =>
      agent.request(toAgent.session.resume, { sessionId, cwd, mcpServers: [], replayFrom: { type: "start" } }),
    async prompt(sessionId, text) {
      const idle = new Promise((resolve) => (turn = { active: false, ended: resolve }));
      const prompt = [{ type: "text", text }];
      const { messageId } = await agent.request(toAgent.session.prompt, { sessionId, prompt });
      return { messageId, stopReason: await idle };
    },
    cancel: (sessionId) => agent.notify(toAgent.session.cancel, { sessionId }),
    close: () => connection.close(),
  };
}
