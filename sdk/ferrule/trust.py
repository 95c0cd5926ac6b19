# SPDX-License-Identifier: Apache-2.0
"""Who can change what is at a path: code and results are taken from places that only this user and root can write."""

from __future__ import annotations

import os
import stat
import sys
from functools import cache
from pathlib import Path


def writer_besides(path: Path) -> str | None:
    """Return why another user can change what is at a path, which exists; None if nobody but root can.

    The path itself and every folder above it count, before and after links are followed. In a folder that everybody can
    write, such as that for temporary files, the sticky bit protects what belongs to this user.
    """
    if sys.platform == "win32":
        return None
    reason = status_reason(path, path.stat())
    if reason is not None:
        return reason
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 links must stay in it
    above = dict.fromkeys((*absolute.parents, *(link for link in _links(absolute)), *path.resolve().parents))
    return next((reason for each in above if (reason := _folder_reason(each)) is not None), None)


def status_reason(path: Path, status: os.stat_result) -> str | None:
    """Return why another user owns or can write a file or folder with this status; None if neither is so."""
    if sys.platform == "win32":
        return None
    if status.st_uid not in {os.geteuid(), 0}:
        return f"{path} belongs to the user {_user(status.st_uid)}, not to {_user(os.geteuid())}"
    return _mode_reason(path, status)


def _folder_reason(path: Path) -> str | None:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):  # its target is another one of the paths
        return None if status.st_uid in _trusted() else f"{path} is a link of the user {_user(status.st_uid)}"
    if status.st_uid not in _trusted():
        return f"{path} belongs to the user {_user(status.st_uid)}, who can replace what is in it"
    return None if status.st_mode & stat.S_ISVTX else _mode_reason(path, status)


def _mode_reason(path: Path, status: os.stat_result) -> str | None:
    if status.st_mode & stat.S_IWOTH:
        return f"every user can write {path}"
    if status.st_mode & stat.S_IWGRP and not _is_private_group(status.st_gid):
        return f"the users of the group {_group(status.st_gid)} can write {path}"
    return None


def _links(path: Path) -> list[Path]:
    return [each for each in (path, *path.parents) if each.is_symlink()]


@cache
def _trusted() -> frozenset[int]:
    """Return the owners of folders above: this user, root, and in a namespace of users, all that it does not have.

    There, the system's folders belong to a user without a number of its own.
    """
    found = {os.geteuid(), 0}
    try:
        mapped = Path("/proc/self/uid_map").read_text(encoding="ascii").split()
        if mapped != ["0", "0", "4294967295"]:
            found.add(int(Path("/proc/sys/kernel/overflowuid").read_text(encoding="ascii")))
    except (OSError, ValueError):
        pass  # no Linux
    return frozenset(found)


@cache
def _is_private_group(number: int) -> bool:
    """Return whether a group is the one that this user has alone, as many systems make for each user, or root's."""
    if sys.platform == "win32":
        return True
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return (
        number in {user.pw_gid, 0} and group.gr_name in {user.pw_name, "root"} and set(group.gr_mem) <= {user.pw_name}
    )


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"number {number}"


def _group(number: int) -> str:
    import grp

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return f"number {number}"
