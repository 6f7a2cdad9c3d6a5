"""Publishing a folder as one version of weights: files first, the manifest last."""

from pathlib import Path

import structlog

from .address import WeightsAddress
from .errors import BadContent, NothingToPublish
from .manifest import NAME, READY, Manifest
from .progress import Progress
from .settings import WarmerSettings
from .store import Store


class Publisher:
    """Uploads folders. A version exists once it has a manifest, and then never changes."""

    def __init__(
        self, store: Store, settings: WarmerSettings, log: structlog.typing.FilteringBoundLogger
    ) -> None:
        self._store = store
        self._settings = settings
        self._log = log

    def publish(self, source: Path, address: WeightsAddress) -> bool:
        """Publish ``source``; return False when the very same version is there already.

        Raises:
            NothingToPublish: the source isn't a folder with files.
            BadManifest: a file's name can't be published.
            BadContent: another content was published under this address.
            StoreAway: the bucket can't be written.
        """
        files = _files_of(source)
        manifest = Manifest.of_folder(source, files)
        published = self._store.read(address, NAME)
        if published is not None:
            if Manifest.from_bytes(published, str(address)) == manifest:
                self._log.info("the same version is published already", destination=str(address))
                return False
            raise BadContent(
                f"{address} holds another content already; publish under a new version"
            )
        progress = Progress(
            "publishing weights", manifest.total_bytes, self._settings.progress_seconds, self._log
        )
        for entry in manifest.files:
            self._store.upload(source / entry.path, address, entry.path, progress.add)
            if self._store.size(address, entry.path) != entry.size:
                raise BadContent(f"{address}{entry.path} didn't arrive whole; publish again")
        self._store.write(address, NAME, manifest.to_bytes())
        progress.finish()
        self._log.info("weights are published", destination=str(address), files=len(files))
        return True


def _files_of(source: Path) -> list[Path]:
    if not source.is_dir():
        raise NothingToPublish(f"{source} isn't a folder")
    hidden = {NAME, READY}
    files = sorted(
        file
        for file in source.rglob("*")
        if file.is_file()
        and file.name not in hidden
        and not any(part.startswith(".") for part in file.relative_to(source).parts)
    )
    if not files:
        raise NothingToPublish(f"{source} has no files")
    return files
