"""What a run was started in."""

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import torch


def environment(device: torch.device, processes: int, precision: str) -> dict[str, Any]:
    """Describe a start of a run, as plain containers: time, versions, the code's commit and the hardware.

    Args:
        device: that the first process runs on.
        processes: how many run, each on a device of its own.
        precision: as Lightning names it.
    """
    devices = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": name if processes == 1 else f"{processes} of {name}",
        "precision": precision,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "gpus": devices,
        "cuda": torch.version.cuda,
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "packages": _packages(),
    }


def _packages() -> dict[str, str]:
    described = (distribution.metadata for distribution in distributions())  # which is read from disk each time
    return dict(sorted((told["Name"], told["Version"]) for told in described if told["Name"]))


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _git(*arguments: str) -> str | None:
    """Ask git about the checkout that this package lies in; None where there is none, as in an installed wheel."""
    here = Path(__file__).resolve().parent
    try:
        answer = subprocess.run(["git", "-C", here, *arguments], capture_output=True, text=True, check=True, timeout=10)
        tracked = subprocess.run(["git", "-C", here, "ls-files", "--error-unmatch", __file__], capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() if tracked.returncode == 0 else None
