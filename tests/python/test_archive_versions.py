"""Indexes of other versions, of grape6py and of HDF5; and what a save costs."""

import h5py
import numpy as np
import pytest

import runs
from grape6py import Hermite, archive
from grape6py.errors import Grape6Warning, SnapshotError
from grape6py.files.storage import output_file
from runs import edited
from test_archive import written


@pytest.mark.parametrize(("version", "words"), [
    (1, r"run\.h5 .* before the first release"), (4, r"run\.h5 is of a newer .*'grape6py run 4'"),
    (2, r"run\.h5 .* before the first release: .*'grape6py run 2'; its outputs in .*run are files "
        "of their own$"),
])  # fmt: skip
def test_an_index_of_another_form_is_refused_and_its_outputs_are_read(path, version, words):
    cluster = written(path)
    if version == 1:  # all was in one file
        with h5py.File(path, "w") as file:
            file["000000/mass"] = np.ones(3)
            file.attrs["format"] = "grape6py run 1"
    else:
        edited(path, lambda file: file.attrs.update(format=f"grape6py run {version}"))
    content = path.read_bytes()
    for use in (Hermite.load, archive.history, cluster.save):
        with pytest.raises(SnapshotError, match=words):
            use(path)
    assert path.read_bytes() == content
    again = Hermite.load(path.parent / "run" / "000002.hdf5")
    assert np.array_equal(again.pos, cluster.pos)


def test_a_state_that_has_more_than_is_known_is_not_gone_on_from(path):
    written(path)
    output = path.parent / "run" / "000002.hdf5"
    edited(output, lambda file: file.create_dataset("grape6py/state/watched", data=np.ones((1, 3))))
    with pytest.raises(SnapshotError, match=r"another version of grape6py: .*state/watched"):
        Hermite.load(output)
    assert len(archive.read_particles(output).mass)
    with pytest.warns(Grape6Warning, match=r"state/watched; gone on from time 0\.25 instead"):
        Hermite.load(path)


def test_an_index_has_the_form_that_every_hdf5_reads(path):
    written(path)
    data = path.read_bytes()
    assert data[8] == 0  # the version of the superblock
    assert output_file.changed(data, lambda _: None) == data


def test_index_and_folder_may_be_renamed_together(path, tmp_path):
    cluster = written(path)
    path.rename(tmp_path / "new.h5")
    (tmp_path / "run").rename(tmp_path / "new")
    again = Hermite.load(tmp_path / "new.h5")
    assert np.array_equal(again.pos, cluster.pos)
    again.evolve(0.5)
    again.save(tmp_path / "new.h5")
    assert runs.times(tmp_path / "new.h5") == [0, 0.25, 0.3, 0.5]
