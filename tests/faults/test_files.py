"""A small file that is replaced: whoever reads it after a crash sees all of the old one or all of the new one."""

from __future__ import annotations

import pytest

from headrace.files import write_atomically
from tests.faults.image import CrashImages, at_each_point


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("file")
    made = CrashImages(folder / "world", folder / "images", "file")
    write_atomically(folder / "world" / "roles.json", "old")
    write_atomically(folder / "world" / "roles.json", "new and longer", made)
    return made


@at_each_point("file")
def test_a_file_is_the_old_or_the_new_one_and_can_be_replaced_again(images, name):
    (taken,) = images.of(name)
    file = taken.folder / "roles.json"
    assert file.read_text() == ("new and longer" if name == "file.rename.after" else "old")
    write_atomically(file, "newest")
    assert file.read_text() == "newest"
