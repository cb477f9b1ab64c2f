"""HDF5 files of a run: their layout, restarts with the same bits."""

import h5py
import numpy as np
import pytest

from grape6py import Hermite, Leapfrog, archive, picture, plummer, snapshot
from grape6py.errors import ArgumentError, Grape6Warning, SnapshotError
from runs import cluster_of, edited, outputs
from test_hermite_use import same
from test_leapfrog import STEPS, sphere


def written(path, **options):
    """A file of three groups; the cluster that wrote it."""
    cluster = cluster_of(40, **options)
    for time in (0.0, 0.25, 0.3):
        cluster.evolve(time)
        cluster.save(path)
    return cluster


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.h5"


def test_a_file_has_a_group_for_each_output(path):
    cluster = written(path)
    with h5py.File(path) as file:
        assert outputs(path) == ["000000", "000001", "000002"]
        assert [file[g].attrs["time"] for g in outputs(path)] == [0.0, 0.25, 0.3]
        last = file["000002"]
        assert last["mass"].shape == (40,)
        assert last["pos"].shape == last["vel"].shape == (40, 3)
        assert last["pos"].dtype == np.float64
        assert np.array_equal(last["pos"], cluster.pos)
        assert np.array_equal(last["mass"], cluster.mass)
        for name, array in cluster.state().items():
            assert np.array_equal(last["state"][name], array)
        assert dict(file.attrs).items() >= cluster.settings.items()


OPTIONS = [{}, {"passes": 2}, {"dt": 0.01, "precision": "double"}, {"precision": "double"}]


@pytest.mark.parametrize(("make", "options"), [
    *[(cluster_of, options) for options in OPTIONS], *[(sphere, options) for options in STEPS]
], ids=lambda value: getattr(value, "__name__", str(value)))  # fmt: skip
def test_a_restart_has_the_bits_of_an_uninterrupted_run(path, make, options):
    whole, half = make(300, **options), make(300, **options)
    for time in (0.0, 0.26, 0.33):
        half.evolve(time)
        half.save(path)
    again = type(whole).load(path, backend=whole.backend.split()[0])
    assert type(again) is type(whole)
    assert (again.time, again.settings) == (0.33, whole.settings)
    assert (again.backend, again.precision) == (whole.backend, whole.precision)
    assert again.energy() == half.energy()
    half.close()
    again.evolve(0.77)
    whole.evolve(0.77)
    assert same(again, whole)
    assert np.array_equal(again.pos, whole.pos)
    assert np.array_equal(again.vel, whole.vel)
    assert (again.steps, again.blocks) == (whole.steps, whole.blocks)


def test_particles_of_any_output_time_can_be_read(path):
    cluster = written(path)
    assert np.array_equal(archive.read_particles(path).pos, cluster.pos)
    assert np.array_equal(archive.read_particles(path, 0).pos, plummer(40, 1).pos)
    assert np.array_equal(snapshot.read_snapshot(path).vel, cluster.vel)
    with pytest.raises(SnapshotError):
        archive.read_particles(path, 3)
    root, groups = archive.history(path)
    assert root["eps"] == 1 / 16
    assert [g["time"] for g in groups] == [0.0, 0.25, 0.3]


@pytest.mark.parametrize("precision", ["double", "single"])
def test_a_restart_in_another_mode_warns_of_other_bits(path, precision):
    written(path)
    with pytest.warns(Grape6Warning, match=f"auto.*{precision}"):
        cluster = Hermite.load(path, precision=precision)
    assert cluster.precision == precision


def test_a_restart_on_another_backend_warns_of_other_bits(path):
    written(path)
    edited(path, lambda file: file.attrs.update(backend="cuda sm_90"))
    with pytest.warns(Grape6Warning, match="cuda sm_90"):
        Hermite.load(path)


@pytest.mark.parametrize("other", [{"eta": 0.01}, {"dt": 0.1}, {"precision": "double"},
                                   {"passes": 2}], ids=str)  # fmt: skip
def test_a_file_takes_no_output_of_other_settings(path, other):
    """Its attributes would no longer say what made the output: a restart would have other bits."""
    written(path)
    before = path.read_bytes()
    cluster = cluster_of(40, **other)
    cluster._run_id = archive.history(path)[0]["run"]
    with pytest.raises(SnapshotError, match="other settings"):
        cluster.save(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("n", [40, 20])
def test_a_file_takes_no_output_of_another_run(path, n):
    """The energy error would be that of one run against the start of another."""
    written(path)
    before = path.read_bytes()
    with pytest.raises(SnapshotError, match="holds another run"):
        cluster_of(n).save(path)
    assert path.read_bytes() == before


def test_a_run_is_the_same_after_a_restart(path, tmp_path):
    cluster = written(path)
    again = Hermite.load(path)
    assert again.run_id == cluster.run_id != cluster_of(40).run_id
    again.evolve(0.5)
    again.save(path)
    assert [r["time"] for r in archive.history(path)[1]] == [0.0, 0.25, 0.3, 0.5]


def test_saving_twice_at_one_time_makes_one_output(path):
    cluster = written(path)
    cluster.save(path)
    Hermite.load(path).save(path)
    assert outputs(path) == ["000000", "000001", "000002"]


@pytest.mark.parametrize("name", ["x.npz", "x.dat", "x", "run.h5.~1~", ".h5"])
def test_other_endings_are_refused_by_name(tmp_path, name):
    with pytest.raises(ArgumentError, match=r"ends in \.h5 or \.hdf5"):
        cluster_of(40).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_file_that_goes_on_is_not_added_to(path):
    """Outputs stand in the order of their times, and a restart is from the last."""
    written(path)
    early = Hermite.load(path.with_suffix("") / "000001.hdf5")
    before = path.read_bytes()
    with pytest.raises(SnapshotError, match=r"goes on to time 0\.3, and this is 0\.25"):
        early.save(path)
    assert path.read_bytes() == before


def test_a_file_has_the_history_of_its_run(path):
    cluster = written(path)
    root, records = archive.history(path)
    start = cluster_of(40).energy().total
    assert root["initial_energy"] == start
    assert records[-1]["error"] == (cluster.energy().total - start) / abs(start)
    assert records[-1]["virial_ratio"] == cluster.virial_ratio()
    assert records[-1]["radii"] == cluster.lagrangian_radii().tolist()
    assert [record["time"] for record in records] == [0.0, 0.25, 0.3]


def test_a_file_can_be_drawn(path, tmp_path):
    written(path)
    picture.draw_file(tmp_path / "run.png", path)
    drawn = (tmp_path / "run.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert len(drawn) > 20000


def test_one_output_is_a_file_of_its_own(path, tmp_path):
    """It is enough to go on from, and to read."""
    cluster = written(path)
    one = tmp_path / "run" / "000001.hdf5"
    early = Hermite.load(one)
    assert early.time == 0.25
    early.evolve(0.3)
    assert np.array_equal(early.pos, Hermite.load(path).pos)
    assert np.array_equal(snapshot.read_snapshot(one).mass, cluster.mass)
    with pytest.raises(SnapshotError, match="one output"):
        early.save(one)
    early.save(tmp_path / "other.h5")
    assert Hermite.load(tmp_path / "other.h5").run_id == cluster.run_id


def test_outputs_are_in_the_layout_of_gadget(path, tmp_path):
    cluster = written(path)
    with h5py.File(tmp_path / "run" / "000002.hdf5") as file:
        assert file["Header"].attrs["NumPart_ThisFile"].tolist() == [0, 40, 0, 0, 0, 0]
        assert file["Header"].attrs["Time"] == 0.3
        bodies = file["PartType1"]
        assert np.array_equal(bodies["Coordinates"], cluster.pos)
        assert np.array_equal(bodies["Velocities"], cluster.vel)
        assert np.array_equal(bodies["Masses"], cluster.mass)
        assert np.array_equal(bodies["ParticleIDs"], np.arange(40))


@pytest.mark.filterwarnings("ignore")
def test_yt_opens_an_output(path, tmp_path):
    yt = pytest.importorskip("yt", reason="SKIP: yt")
    cluster = written(path)
    yt.set_log_level("error")
    found = yt.load(str(tmp_path / "run" / "000002.hdf5"))
    assert float(found.current_time) == 0.3
    data = found.all_data()
    order = np.argsort(data["all", "ParticleIDs"])
    assert np.array_equal(data["all", "Coordinates"].v[order], cluster.pos)
    for name, unit in ("Velocities", found.velocity_unit), ("Masses", found.mass_unit):
        ours = (data["all", name] / unit).to("dimensionless").v[order]
        assert np.allclose(ours, cluster.vel if name == "Velocities" else cluster.mass, rtol=1e-14)


@pytest.mark.filterwarnings("ignore")
def test_pynbody_opens_an_output(path, tmp_path):
    pynbody = pytest.importorskip("pynbody", reason="SKIP: pynbody")
    cluster = written(path)
    found = pynbody.load(str(tmp_path / "run" / "000002.hdf5"))
    assert np.array_equal(found["pos"], cluster.pos)
    assert np.array_equal(found["vel"], cluster.vel)
    assert np.array_equal(found["mass"], cluster.mass)
    assert np.array_equal(found["iord"], np.arange(40))


def test_who_left_through_the_boundary_keeps_his_number(tmp_path):
    stars = Leapfrog(*plummer(60, 1), eps=0.1, dt=1 / 8, boundary=1.0)
    stars.evolve(4.0)
    stars.save(tmp_path / "a.h5")
    assert 0 < stars.n < 60
    assert np.array_equal(stars.mass, plummer(60, 1).mass[stars.ids])
    again = Leapfrog.load(tmp_path / "a.h5")
    assert np.array_equal(again.ids, stars.ids)
    assert again.ids.dtype == stars.ids.dtype
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["000000/ids"], stars.ids)
