"""The program that a judged client starts as its agent: it copies bytes between its stdio and the judge.

Run as a file, with the path of the judge's socket. It imports nothing of Antiphon, so that it starts fast.
"""

import os
import signal
import socket
import sys
import threading

READ_SIZE = 256 * 1024


def copy_input(link: socket.socket) -> None:
    """Copy stdin to the judge. An agent ends when its input ends (TRANS-06)."""
    while data := os.read(0, READ_SIZE):
        link.sendall(data)
    link.shutdown(socket.SHUT_WR)
    os._exit(0)


def main() -> None:
    # Ctrl-C is for the client. It reaches the stand-in too, if both are in one process group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = socket.socket(socket.AF_UNIX)
    link.connect(sys.argv[1])
    threading.Thread(target=copy_input, args=(link,), daemon=True).start()
    while data := link.recv(READ_SIZE):
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]
    os._exit(1)  # the judge let its agent die


if __name__ == "__main__":
    try:
        main()
    except OSError:
        os._exit(1)
