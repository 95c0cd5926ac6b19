# SPDX-License-Identifier: Apache-2.0
"""Runs an emulator, if asked to in a separate network namespace, and provides connections into it.

It is started as a separate script, `python -I -S supervisor.py FD isolated|host program arguments...`, where FD is one
end of a pair of datagram sockets. It first sends `started PID` or, without a namespace, `refused REASON`. It then
answers `connect PORT` and `listen` with `ok PORT` and the socket's descriptor, `free` with `ok PORT`, and a failed
request with `error REASON`. When the other end closes, as it does when the parent dies, it kills the emulator and its
child processes.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import os
import select
import signal
import socket
import struct
import sys
from pathlib import Path

POLL_S = 0.1
LOOPBACK = "127.0.0.1"
_NEW_USER, _NEW_NET = 0x1000_0000, 0x4000_0000
_SET_FLAGS, _UP = 0x8914, 0x41


def isolate() -> None:
    """Enter a new network namespace, within a user namespace if necessary, and enable its loopback interface."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_NET) != 0:
        if libc.unshare(_NEW_USER | _NEW_NET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP))


def answer(request: list[str]) -> tuple[str, socket.socket | None]:
    """Return the answer to a request and the socket to pass with it, if any."""
    match request:
        case ["connect", port]:
            return f"ok {port}", socket.create_connection((LOOPBACK, int(port)), 10)
        case ["listen"]:
            listener = socket.create_server((LOOPBACK, 0))
            return f"ok {listener.getsockname()[1]}", listener
        case ["free"]:
            with socket.create_server((LOOPBACK, 0)) as probe:
                return f"ok {probe.getsockname()[1]}", None
    return "error unknown request", None


def serve(control: socket.socket) -> bool:
    """Answer one request; return False once the other end has closed."""
    data = control.recv(4096)
    if not data:
        return False
    try:
        text, passed = answer(data.decode().split())
    except (OSError, ValueError) as error:
        text, passed = f"error {error}", None
    files = [] if passed is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [passed.fileno()]))]
    control.sendmsg([text.encode()], files)
    if passed is not None:
        passed.close()
    return True


def supervise(control: socket.socket, argv: list[str]) -> int:
    """Run the program, say so, and return its exit code; 128 plus the signal's number if a signal ended it."""
    null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))  # kills the program, too
    child = os.posix_spawnp(argv[0], argv, os.environ, file_actions=[null], setpgroup=0)
    try:
        control.send(f"started {child}".encode())
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            readable, _, _ = select.select([control], [], [], POLL_S)
            if readable and not serve(control):
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return 0
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)


def main(descriptor: str, where: str, *argv: str) -> int:
    """Run the supervisor, see the module's docstring, and return its exit code."""
    with socket.socket(fileno=int(descriptor)) as control:
        try:
            if where == "isolated":
                isolate()
        except (OSError, AttributeError) as error:
            control.send(f"refused {error}".encode())
            return 1
        try:
            return supervise(control, list(argv))
        except OSError as error:
            print(f"{argv[0]}: {error}", file=sys.stderr)  # noqa: T201 (the parent quotes it)
            return 127


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
