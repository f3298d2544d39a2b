"""The hub: any agent, many clients, one durable session."""

from typing import TYPE_CHECKING

from antiphon.lazy_names import lazy_names

if TYPE_CHECKING:
    from antiphon.hub.about import HubAbout
    from antiphon.hub.access.audit import Audit
    from antiphon.hub.access.limits import HubLimits
    from antiphon.hub.access.origins import is_loopback, read_public_url
    from antiphon.hub.access.tokens import create_token, read_tokens, revoke_token
    from antiphon.hub.folder import HubFolder, Running
    from antiphon.hub.hub import Hub
    from antiphon.hub.options import Access, AlertOptions, HubOptions, QuestionOptions
    from antiphon.hub.records import imported_record, recorded_agent
    from antiphon.hub.upstream.catalogue import (
        CatalogueAgent,
        catalogue,
        find_agent,
        start_advice,
        wants_login,
    )
    from antiphon.hub.upstream.target import default_agent_name
    from antiphon.server.method import Role

__all__ = [
    "Access", "AlertOptions", "Audit", "CatalogueAgent", "Hub", "HubAbout", "HubFolder", "HubLimits",
    "HubOptions", "QuestionOptions", "Role", "Running", "catalogue", "create_token", "default_agent_name",
    "find_agent", "imported_record", "is_loopback", "read_public_url", "read_tokens", "recorded_agent",
    "revoke_token", "start_advice", "wants_login",
]  # fmt: skip
__getattr__ = lazy_names(__name__, {
    "hub": ("Hub",),
    "about": ("HubAbout",),
    "folder": ("HubFolder", "Running"),
    "access.audit": ("Audit",),
    "access.limits": ("HubLimits",),
    "access.origins": ("is_loopback", "read_public_url"),
    "access.tokens": ("Role", "create_token", "read_tokens", "revoke_token"),
    "options": ("Access", "AlertOptions", "HubOptions", "QuestionOptions"),
    "records": ("imported_record", "recorded_agent"),
    "upstream.catalogue": ("CatalogueAgent", "catalogue", "find_agent", "start_advice", "wants_login"),
    "upstream.target": ("default_agent_name",),
})  # fmt: skip
