// An ACP v1 client over stdio, written with the official TypeScript SDK.
// drive.mjs says what it does and how it is called, load.mjs how it finds the SDK.

import { drive } from "./drive.mjs";
import { loadSdk } from "./load.mjs";

const acp = await loadSdk("");
const { agent: toAgent, client: methods } = acp.methods;

await drive((output, input, handlers) => {
  const connection = acp
    .client({ name: "sdk-ts-client-v1" })
    .onNotification(methods.session.update, ({ params }) => handlers.update(params.update))
    .onRequest(methods.session.requestPermission, ({ params: { toolCall, options } }) =>
      handlers.permission({ toolCallId: toolCall.toolCallId, options }),
    )
    .connect(acp.ndJsonStream(output, input));
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
    async newSession(cwd) {
      return (await agent.request(toAgent.session.new, { cwd, mcpServers: [] })).sessionId;
    },
    async prompt(sessionId, text) {
      const prompt = [{ type: "text", text }];
      const { stopReason } = await agent.request(toAgent.session.prompt, { sessionId, prompt });
      return { stopReason };
    },
    cancel: (sessionId) => agent.notify(toAgent.session.cancel, { sessionId }),
    close: () => connection.close(),
  };
});
