"""ACP over Streamable HTTP and WebSockets: the parts of these transports that know methods and sessions.

HTTP has one stream per session, so a server and a client have to know to which session a frame belongs.
"""
