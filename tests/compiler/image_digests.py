"""Digests of the images of all :data:`tests.support.image_cases.IMAGES`, kept in ``image_digests.json``.

    python -m tests.compiler.image_digests --write    # when images change that should

A digest that differs shows a decision of the compiler that changed. Only this command writes the file, and the commit
says why.
"""

import argparse
import hashlib
import json
from pathlib import Path

from tests.support.image_cases import IMAGES, ImageCase

FILE = Path(__file__).with_name("image_digests.json")
HINT = "if the images should change, `python -m tests.compiler.image_digests --write` writes their digests"


def digests(case: ImageCase) -> str:
    """The first 16 digits of SHA-256 of each image, in order."""
    return " ".join(hashlib.sha256(data).hexdigest()[:16] for data in case.files())


def known() -> dict[str, str]:
    """The digests in the file, by name of the case."""
    found: dict[str, str] = json.loads(FILE.read_text())
    return found


def write() -> None:
    """Compile all cases and write the file, a line for each."""
    lines = [f"{json.dumps(case.name)}: {json.dumps(digests(case))}" for case in IMAGES]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> None:
    """Write the file if that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.compiler.image_digests", description="digests of images")
    parser.add_argument("--write", action="store_true", required=True, help="compile all cases and rewrite the file")
    parser.parse_args()
    write()


if __name__ == "__main__":
    main()
