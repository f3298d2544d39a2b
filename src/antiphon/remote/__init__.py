"""ACP over Streamable HTTP and WebSockets: the parts of these transports that know methods and sessions.

HTTP has one stream per session, so both sides must know to which session a frame belongs.
"""
