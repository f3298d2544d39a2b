"""HubContext: what the workers of a hub share: its agents, and how sessions are opened there."""

from __future__ import annotations

from typing import Any

from antiphon.errors import AntiphonError, ErrorObject, RequestError
from antiphon.hub.access.audit import Audit
from antiphon.hub.options import QuestionOptions
from antiphon.hub.upstream.errors import FailedAgent, explained, to_request_error
from antiphon.hub.upstream.known_agents import KnownAgent, KnownAgents, announce, describe
from antiphon.hub.upstream.logins import AgentLogins
from antiphon.hub.upstream.pool import UpstreamPool
from antiphon.hub.upstream.session import UpstreamSession
from antiphon.hub.upstream.upstream import Upstream
from antiphon.hub.worker.place import Place, open_new
from antiphon.schema import v2
from antiphon.server.offer import Offer
from antiphon.stores.base import Store


class HubContext:
    def __init__(
        self,
        store: Store,
        offer: Offer,
        *,
        upstreams: UpstreamPool,
        logins: AgentLogins,
        known_agents: KnownAgents,
        audit: Audit,
        questions: QuestionOptions,
        home: dict[str, Any] | None = None,
    ) -> None:
        """`home`: where sessions of this hub are at home, if it shares its store with others."""
        self.store = store
        self.offer = offer
        self.agents = upstreams.targets
        self.default = next(iter(self.agents), "")
        self.upstreams = upstreams
        self.logins = logins
        self.known_agents = known_agents
        self.states = upstreams.states
        self.audit = audit
        self.unattended = questions.unattended
        self.question_expiry = questions.expiry
        self.mcp_servers: dict[str, tuple[v2.McpServer, ...]] = {}
        """The MCP servers of sessions that were put away: a client that only joins one brings none. They may
        hold secrets, so they are kept only in memory."""
        self.home = home
        self.stopping = False
        """Whether the hub takes nothing new, because it is about to end."""

    def check_taking(self) -> None:
        """Raise `RequestError` if the hub is about to end and takes nothing new."""
        if self.stopping:
            raise RequestError(AntiphonError.code, "The hub is about to end", data={"reason": "shutdown"})

    def failure(self, name: str, error: BaseException, upstream: Upstream | None = None) -> RequestError:
        """Return the error to answer a client with for an error of an agent, and note what it says about the
        agent. `upstream` is the agent's process, if it was started."""
        answer = to_request_error(error, self._failed_agent(name, upstream))
        self.states.failed(name, answer.to_wire())
        return answer

    def prompt_failure(self, name: str, error: ErrorObject, upstream: Upstream | None) -> ErrorObject:
        """Return what an agent answered to a prompt, with its words and advice, and note it as `failure`."""
        told = explained(error, self._failed_agent(name, upstream))
        self.states.failed(name, told)
        return told

    def _failed_agent(self, name: str, upstream: Upstream | None) -> FailedAgent:
        return FailedAgent(name, self.agents.get(name)) if upstream is None else upstream.failed_agent

    def learn(self, upstream: Upstream) -> None:
        """Offer what an agent can do to clients that come from here on (invariant 10)."""
        known = describe(upstream.agent, upstream.agent.auth_methods)
        self.known_agents.keep(upstream.name, known)
        self.states.started(upstream.name)
        if upstream.name == self.default:
            self.offer.provisional = False
        self.announce(upstream.name, known)

    def announce(self, name: str, known: KnownAgent) -> None:
        """Offer what is known of an agent to clients that come from here on."""
        self.logins.offer(name, known.read_logins(), known.abilities)
        if name == self.default:
            announce(self.offer, known.abilities, inserts=known.inserts)

    async def open_new(self, upstream: Upstream, place: Place) -> UpstreamSession:
        """Open a new session at an agent."""
        self.learn(upstream)
        return await self.logins.admitted(upstream, lambda: open_new(upstream, place))
