"""A folder that file tools stay within, whatever path or symbolic link they are given."""

from __future__ import annotations

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from agents.errors import ToolDefinitionError, ToolDenied
from agents.tool_arguments import near

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Root:
    """A folder and everything beneath it.

    A path is resolved first, so that links within the folder work. Then it is opened one part at
    a time without following links, so that a link put there in between leads nowhere.

    Args:
        path: The folder; it may itself be reached through a link.
        max_bytes: Files above this size are not read.

    Raises:
        ToolDefinitionError: There is no such folder.
    """

    def __init__(self, path: Path, *, max_bytes: int) -> None:
        if not path.is_dir():
            raise ToolDefinitionError(f"there is no folder {str(path)!r}: create it or correct it")
        self.path = path.resolve()
        self.max_bytes = max_bytes

    def parts(self, name: str) -> tuple[str, ...]:
        """Return the parts of a relative path, links resolved; ``()`` is the folder itself.

        Raises:
            ToolDenied: The path leads out of the folder, is hidden, or is no path.
        """
        if "\0" in name or len(name) > 1_000:
            raise ToolDenied("a path has no NUL and at most 1,000 characters")
        if name.startswith(("/", "~")):
            raise ToolDenied(f"{name!r} is not relative: give a path within the folder")
        try:
            resolved = (self.path / name).resolve()
        except (OSError, RuntimeError) as exc:
            raise ToolDenied(f"{name!r} cannot be followed: {type(exc).__name__}") from exc
        if not resolved.is_relative_to(self.path):
            raise ToolDenied(f"{name!r} leads out of the folder: stay within it")
        parts = resolved.relative_to(self.path).parts
        if any(part.startswith(".") for part in parts):
            # Keys lie in .env, and a hook written into .git runs at the next commit.
            raise ToolDenied(f"{name!r} is hidden: hidden files and folders are left alone")
        return parts

    def read(self, name: str) -> str:
        """Return a text file's content, without its byte order mark.

        Raises:
            ToolDenied: The path leads out of the folder, or is no regular file.
            ValueError: No such file, too large, or not UTF-8 text.
        """
        parts = self.parts(name)
        try:
            fd = self._open(parts)
        except FileNotFoundError:
            known = [path for path, _ in self.walk("*")]
            raise ValueError(f"there is no file {name!r}{near(name, known)}") from None
        except OSError as exc:
            raise ToolDenied(f"{name!r} cannot be opened: {exc.strerror}") from exc
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ToolDenied(f"{name!r} is not a file")
        with os.fdopen(fd, "rb") as file:
            data = file.read(self.max_bytes + 1)
        if len(data) > self.max_bytes:
            raise ValueError(f"{name!r} has more than {self.max_bytes:,} bytes: too large to read")
        if b"\0" in data:
            raise ValueError(f"{name!r} is binary: only text can be read")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ValueError(f"{name!r} is not UTF-8 text") from None

    def write(self, name: str, text: str) -> int:
        """Replace a file in one step, its folders made as needed; return the number of bytes.

        Raises:
            ToolDenied: The path leads out of the folder, or names a folder.
        """
        parts = self.parts(name)
        if not parts or name.endswith("/"):
            raise ToolDenied(f"{name!r} is a folder: name a file")
        data = text.encode()
        try:
            folder = self._folder(parts[:-1], make=True)
            try:
                _replace(folder, parts[-1], data)
            finally:
                os.close(folder)
        except OSError as exc:
            raise ToolDenied(f"{name!r} cannot be written: {exc.strerror}") from exc
        return len(data)

    def walk(self, glob: str, below: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
        """Yield path and size of the files that match, sorted; hidden ones are left out.

        Args:
            glob: ``*`` also stands for ``/``; a pattern without ``/`` matches names anywhere.
            below: Parts of the folder to begin at.
        """
        for folder, names, files in os.walk(self.path.joinpath(*below)):
            names[:] = sorted(n for n in names if not n.startswith("."))
            for file in sorted(f for f in files if not f.startswith(".")):
                path = Path(folder, file)
                relative = path.relative_to(self.path).as_posix()
                if not _matches(relative, glob):
                    continue
                # A link that leads nowhere, in a circle or outwards is not listed.
                with suppress(OSError, RuntimeError):
                    status = path.stat()
                    inside = path.resolve().is_relative_to(self.path)
                    if inside and stat.S_ISREG(status.st_mode):
                        yield relative, status.st_size

    def _open(self, parts: tuple[str, ...]) -> int:
        folder = self._folder(parts[:-1])
        try:
            # O_NONBLOCK: opening a pipe would wait for its writer.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            return os.open(parts[-1] if parts else ".", flags, dir_fd=folder)
        finally:
            os.close(folder)

    def _folder(self, parts: tuple[str, ...], *, make: bool = False) -> int:
        fd = os.open(self.path, _DIRECTORY)
        for part in parts:
            try:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=fd)
                below = os.open(part, _DIRECTORY, dir_fd=fd)
            finally:
                os.close(fd)
            fd = below
        return fd


def _replace(folder: int, name: str, data: bytes) -> None:
    temporary = f".{uuid.uuid4().hex}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _matches(path: str, glob: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    pattern = glob.removeprefix("./").removeprefix("**/")
    return fnmatchcase(path, pattern) or ("/" not in pattern and fnmatchcase(name, pattern))
