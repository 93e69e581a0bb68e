"""Downloads with checksums and a progress bar."""

import sys
from collections.abc import Mapping
from pathlib import Path

from attnlab.data.cache import cache_folder
from attnlab.errors import UserError


def fetch(name: str, base_url: str, checksums: Mapping[str, str], *, folder: str, remedy: str) -> Path:
    """Return a file of the user's cache folder, downloading it first if it is not there.

    Args:
        name: of the file.
        base_url: of the folder that it is in.
        checksums: SHA-256 by name.
        folder: subfolder of the cache.
        remedy: what to do where it cannot be had, to end the message with.

    Raises:
        UserError: an unknown name, an address that is none, no network, a cache that cannot be written, or content that does
            not match its checksum.
    """
    import pooch

    if name not in checksums:
        raise UserError(f"no file {name} is published at {base_url}: there is {', '.join(sorted(checksums))}")
    if not base_url.startswith(("https://", "http://")):
        raise UserError(f"base_url={base_url} is no address of the web: it begins with https:// or http://")
    base_url = f"{base_url.rstrip('/')}/"
    registry = pooch.create(cache_folder() / folder, base_url, registry=dict(checksums), retry_if_failed=1)
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(registry.fetch(name, progressbar=sys.stderr.isatty()))
    except OSError as error:
        if error.errno is not None:  # those of the network, which requests raises, have none
            raise UserError(f"cannot write {registry.path} ({error.strerror}): set ATTNLAB_CACHE to another folder") from error
        raise UserError(f"cannot download {base_url}{name} ({type(error).__name__}): {remedy}") from error
    except ValueError as error:
        raise UserError(f"{base_url}{name} is not the file it should be (its checksum differs): {remedy}") from error
