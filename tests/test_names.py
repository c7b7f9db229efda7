"""One term per thing: no two public classes of the project share a name."""

import ast
from collections import defaultdict

from tests.test_imports import MODULES

#: Names with one meaning in two places: the device as users open it, and as the driver has it.
SHARED = {"Device"}


def test_no_two_classes_share_a_name():
    places = defaultdict(list)
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert len(places) > 400
    assert {name: where for name, where in places.items() if len(where) > 1 and name not in SHARED} == {}
