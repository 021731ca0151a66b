"""A bundle on disk: a folder and beside it a ``.tar.gz`` of the same, the same bytes for the same files."""

import gzip
import io
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tracekit.errors import WrongUsage

_PROGRAM, _FILE = 0o755, 0o644


def check_place(folder: Path, force: bool) -> None:
    """Refuse, before any work is done, to overwrite what is there or to write where nothing can be. WrongUsage."""
    for path in (folder, archive_of(folder)):
        if path.exists() and not force:
            raise WrongUsage(f"{path}: exists already: name another folder by -o, or add --force")
    if folder.exists() and not (folder / "repro.cu").is_file():
        raise WrongUsage(f"{folder}: is no repro: name another folder by -o")
    if not folder.absolute().parent.is_dir():
        raise WrongUsage(f"{folder}: the folder that it shall stand in does not exist: create it first")


def archive_of(folder: Path) -> Path:
    """The archive beside a folder."""
    return folder.with_name(f"{folder.name}.tar.gz")


def write_bundle(files: Mapping[str, bytes], folder: Path) -> None:
    """Write both; each appears whole or not at all, and replaces what is there. Raises WrongUsage."""
    try:
        with tempfile.TemporaryDirectory(dir=folder.absolute().parent, prefix=f".{folder.name}.") as aside:
            fresh, packed = Path(aside, "bundle"), Path(aside, "bundle.tar.gz")
            for name, content in files.items():
                target = fresh / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
                target.chmod(_mode(name))
            packed.write_bytes(packed_bundle(files, folder.name))
            if folder.exists():
                shutil.move(folder, Path(aside, "former"))
            fresh.replace(folder)
            packed.replace(archive_of(folder))
    except OSError as error:
        raise WrongUsage(f"{folder}: cannot be written ({error.strerror}): name another place by -o") from error


def packed_bundle(files: Mapping[str, bytes], name: str) -> bytes:
    """The archive: names in order, no times, no owners, and no file name in the header of gzip."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0, compresslevel=9) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mode = len(content), _mode(path)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _mode(name: str) -> int:
    return _PROGRAM if name.endswith(".sh") else _FILE
