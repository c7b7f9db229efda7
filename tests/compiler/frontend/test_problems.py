"""What libraries say, in one line."""

import onnx
import pytest

from compiler.frontend.problems import first_line


@pytest.mark.parametrize(("said", "line"), [("", "ValidationError"), ("\n a\nb", "a"), ("a", "a")])
def test_first_line(said, line):
    assert first_line(onnx.checker.ValidationError(said)) == line
