"""Downloads with checksums and a progress bar."""

from collections.abc import Mapping
from pathlib import Path

from attnlab.data.cache import cache_folder
from attnlab.errors import UserError


def fetch(name: str, base_url: str, checksums: Mapping[str, str], *, folder: str, remedy: str) -> Path:
    """Return a file of the user's cache folder, downloading it first if it is not there.

    Args:
        name: of the file.
        base_url: what it is appended to.
        checksums: SHA-256 by name.
        folder: subfolder of the cache.
        remedy: what to do where it cannot be had, to end the message with.

    Raises:
        UserError: an unknown name, no network, a cache that cannot be written, or content that does not match its checksum.
    """
    import pooch

    if name not in checksums:
        raise UserError(f"no file {name} is published at {base_url}: there is {', '.join(sorted(checksums))}")
    registry = pooch.create(cache_folder() / folder, base_url, registry=dict(checksums), retry_if_failed=1)
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(registry.fetch(name, progressbar=True))
    except OSError as error:
        if error.errno is not None:  # those of the network, which requests raises, have none
            raise UserError(f"cannot write {registry.path} ({error.strerror}): set ATTNLAB_CACHE to another folder") from error
        raise UserError(f"cannot download {base_url}{name} ({type(error).__name__}): {remedy}") from error
    except ValueError as error:
        raise UserError(f"{base_url}{name} is not the file it should be (its checksum differs): {remedy}") from error
