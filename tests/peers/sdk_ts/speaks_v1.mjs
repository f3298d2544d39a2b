// What a v1 client is in the words of the official TypeScript SDK: `connect` on a stream of messages, such as
// `lines` makes of two byte streams. load.mjs says how the SDK is found.

import { loadSdk } from "./load.mjs";

const acp = await loadSdk("");
export const lines = acp.ndJsonStream;
const { agent: toAgent, client: methods } = acp.methods;

export function connect(stream, handlers) {
  const connection = acp
    .client({ name: "sdk-ts-client-v1" })
    .onNotification(methods.session.update, ({ params }) => handlers.update(params.update))
    .onRequest(methods.session.requestPermission, ({ params: { toolCall, options } }) =>
      handlers.permission({ toolCallId: toolCall.toolCallId, options }),
    )
    .connect(stream);
  const { agent } = connection;

  return {
    async initialize() {
      const answer = await agent.request(toAgent.initialize, {
        protocolVersion: acp.PROTOCOL_VERSION,
        clientInfo: { name: "sdk-ts-client-v1", version: "1.0.0" },
        clientCapabilities: {},
      });
      return { protocolVersion: answer.protocolVersion, agent: answer.agentInfo?.name };
    },
    async newSession(cwd, _meta) {
      return (await agent.request(toAgent.session.new, { cwd, mcpServers: [], ...(_meta && { _meta }) })).sessionId;
    },
    joinSession: (sessionId, cwd) => agent.request(toAgent.session.load, { sessionId, cwd, mcpServers: [] }),
    async prompt(sessionId, text) {
      const prompt = [{ type: "text", text }];
      const { stopReason } = await agent.request(toAgent.session.prompt, { sessionId, prompt });
      return { stopReason };
    },
    cancel: (sessionId) => agent.notify(toAgent.session.cancel, { sessionId }),
    close: () => connection.close(),
  };
}
