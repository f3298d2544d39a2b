"""What is on the wire, per protocol version: types, the method table, the codec. No I/O, no behaviour."""
