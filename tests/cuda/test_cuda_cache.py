"""CuPy's folder for compiled kernels, while CuPy is imported."""

import os
import tempfile

import pytest

from grape6py.cuda import cache


def test_a_folder_that_can_be_made_is_left_alone(tmp_path, monkeypatch):
    folder = str(tmp_path / "some" / "where")
    monkeypatch.setenv(cache.VARIABLE, folder)
    with cache.for_import():
        assert os.environ[cache.VARIABLE] == folder
        assert os.path.isdir(folder)


@pytest.mark.parametrize("told", [True, False], ids=["variable", "home"])
def test_row39_without_one_there_is_another_for_the_while(tmp_path, monkeypatch, told):
    """Root may write anywhere, but not under a file."""
    (tmp_path / "file").write_text("")
    bad = str(tmp_path / "file" / "cache")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    if told:
        monkeypatch.setenv(cache.VARIABLE, bad)
    seen = []

    def fail():
        with cache.for_import():
            folder = os.environ[cache.VARIABLE]
            seen.extend([folder, os.path.isdir(folder)])
            raise ImportError

    pytest.raises(ImportError, fail)
    folder, there = seen
    assert there
    assert folder != bad
    assert os.environ.get(cache.VARIABLE) == (bad if told else None)
    assert not os.path.exists(folder)


def test_row39_no_folder_at_all_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(OSError, match="file"), cache.for_import():
        raise AssertionError
