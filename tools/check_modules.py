"""Usage: check_modules.py REQUIREMENTS [OPTIONAL...]: is what the file names installed?

Names every missing package in one sentence and exits 1; those named as optional may be missing.
"""

import importlib.metadata
import pathlib
import re
import sys


def missing_packages(requirements: str) -> list[str]:
    """Names in `requirements` (a requirements file's text) that are not installed, in order."""
    missing = []
    for line in requirements.splitlines():
        match = re.match(r"[A-Za-z0-9_.-]+", line)
        if not match or match[0] in missing:
            continue
        try:
            importlib.metadata.version(match[0])
        except importlib.metadata.PackageNotFoundError:
            missing.append(match[0])
    return missing


def main() -> int:
    file, *optional = sys.argv[1:]
    text = pathlib.Path(file).read_text(encoding="utf-8")
    missing = [name for name in missing_packages(text) if name not in optional]
    if missing:
        print(
            f"nsp: NSP_PYTHON {sys.executable} has no {', '.join(missing)}; "
            f"install into it what {file} names, or unset NSP_PYTHON",
            file=sys.stderr,
        )
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
