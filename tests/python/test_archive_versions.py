"""Indexes of other versions, of grape6py and of HDF5; and what a save costs."""

import contextlib

import h5py
import numpy as np
import pytest

import runs
from grape6py import Hermite, archive
from grape6py._io import output_file
from grape6py.errors import Grape6Warning, SnapshotError
from runs import cluster_of, edited, with_table_in_attributes
from test_archive import written


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.h5"


@pytest.mark.parametrize("options", [{}, {"libver": ("v108", "v110")}], ids=["earliest", "v108"])
def test_an_index_of_version_02_is_read_and_gone_on_with(path, options):
    cluster = written(path)
    records = archive.history(path)
    with_table_in_attributes(path, **options)
    is_wrong = options and h5py.version.hdf5_version_tuple < (2,)  # its checksum, by that HDF5
    damaged = pytest.warns(Grape6Warning, match="is damaged or incomplete: .*read from its outputs")
    with damaged if is_wrong else contextlib.nullcontext():
        assert archive.history(path) == records
    cluster.evolve(0.5)
    with damaged if is_wrong else contextlib.nullcontext():
        cluster.save(path)
    assert [r["time"] for r in archive.history(path)[1]] == [0.0, 0.25, 0.3, 0.5]
    assert h5py.File(path).attrs["format"] == "grape6py run 3"


def test_an_index_of_a_later_version_is_refused_by_name(path):
    written(path)
    edited(path, lambda file: file.attrs.update(format="grape6py run 4"))
    with pytest.raises(SnapshotError, match=r"run\.h5 is of a newer grape6py.*'grape6py run 4'"):
        Hermite.load(path)


def test_a_file_of_before_the_first_release_is_refused_by_name(path):
    with h5py.File(path, "w") as file:
        file.attrs["format"] = "grape6py run 1"
        file["000000/mass"] = np.ones(3)
    content = path.read_bytes()
    for use in (Hermite.load, archive.history, cluster_of(8).save):
        with pytest.raises(SnapshotError, match=r"run\.h5 .* before the first release"):
            use(path)
    assert path.read_bytes() == content


def test_an_index_has_the_form_that_every_hdf5_reads(path):
    written(path)
    data = path.read_bytes()
    assert data[8] == 0  # the version of the superblock
    assert output_file.changed(data, lambda _: None) == data


def test_a_save_makes_one_link_however_many_outputs_there_are(path, monkeypatch):
    """Not all of them anew: what a save costs does not grow."""
    cluster, made = cluster_of(8), []

    class Counted(h5py.ExternalLink):
        def __init__(self, *arguments):
            made.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(h5py, "ExternalLink", Counted)
    times = np.arange(80) / 512
    for time in times:  # more than a chunk of the table
        cluster.evolve(time)
        cluster.save(path)
    assert len(made) == 80
    with archive.Writer(path) as writer:
        for time in times[:3] + 0.25:
            cluster.evolve(time)
            writer.save(cluster)
    assert len(made) == 83
    assert [r["time"] for r in archive.history(path)[1]] == [*times, *times[:3] + 0.25]
    assert runs.times(path) == [*times, *times[:3] + 0.25]


def test_index_and_folder_may_be_renamed_together(path, tmp_path):
    cluster = written(path)
    path.rename(tmp_path / "new.h5")
    (tmp_path / "run").rename(tmp_path / "new")
    again = Hermite.load(tmp_path / "new.h5")
    assert np.array_equal(again.pos, cluster.pos)
    again.evolve(0.5)
    again.save(tmp_path / "new.h5")
    assert runs.times(tmp_path / "new.h5") == [0, 0.25, 0.3, 0.5]
