"""New files that get their names when all of them are complete, and else vanish."""

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

from anybatch.errors import WillNotOverwrite


def refuse_existing(files: Iterable[str | os.PathLike[str]]) -> None:
    """Raise `WillNotOverwrite` for the first of the files that is there already."""
    for file in files:
        # a link that leads nowhere is somebody's name too
        if os.path.lexists(file):
            raise WillNotOverwrite(os.fspath(file))


class WholeFiles:
    """Files written under temporary names beside their places.

    Leaving the `with` block moves all of them to their places; leaving it by an error, Ctrl-C included,
    removes all of them, and the folders that were made for them.
    """

    def __init__(self, *, overwrite: bool = False) -> None:
        self._overwrite = overwrite
        self._begun: dict[Path, Path] = {}
        self._moved: list[tuple[Path, Path]] = []
        self._made_folders: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is None:
            self._place()
        else:
            self._vanish()

    def begin(self, file: str | os.PathLike[str]) -> Path:
        """Return where to write the file for now. What is written there has to be on the disk by the end."""
        place = Path(file)
        if not self._overwrite:
            refuse_existing([place])
        self._make_folder(place.parent)
        temporary = _temporary_beside(place)
        if self._begun.setdefault(place, temporary) is not temporary:
            raise WillNotOverwrite(str(place))
        return temporary

    @contextmanager
    def scratch_folder(self, beside: Path) -> Iterator[Path]:
        """Give a folder for files that are needed inside the `with` block only, on the disk of the others."""
        self._make_folder(beside.parent)
        folder = beside.with_name(f".anybatch-{os.getpid()}.{os.urandom(4).hex()}")
        try:
            # named before it is made: a signal may come at any moment, and then it has to be found
            folder.mkdir()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _make_folder(self, folder: Path) -> None:
        self._made_folders += [one for one in (folder, *folder.parents) if not one.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None

    def _place(self) -> None:
        try:
            # again: whoever made such a file meanwhile keeps it
            if not self._overwrite:
                refuse_existing(self._begun)
            for place, temporary in self._begun.items():
                self._moved.append((temporary, place))
                temporary.replace(place)
            sync_folders({place.parent for place in self._begun})
        except BaseException:
            self._vanish()
            raise

    def _vanish(self) -> None:
        for temporary, place in self._moved:
            # what was replaced cannot be brought back: then the new file is better than none
            if not self._overwrite and not temporary.exists():
                place.unlink(missing_ok=True)
        for temporary in self._begun.values():
            temporary.unlink(missing_ok=True)
        for folder in self._made_folders:
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file that must not exist yet; leaving the `with` block puts all of it on the disk."""
    with path.open("xb") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())


def sync_folders(folders: Iterable[Path]) -> None:
    """Put new names on the disk too."""
    for folder in folders:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _temporary_beside(place: Path) -> Path:
    # a dot-file, so that `train/*` never matches it
    return place.with_name(f".{place.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
