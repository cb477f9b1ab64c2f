"""PyTorch's tensors in all calls that take arrays, on a true GPU: pytest -m gpu.

Skipped where there is none, or no PyTorch. The rules are tested on a stand-in
(test_foreign_arrays.py). Tensors are written by a stream of PyTorch's own that sleeps first: until
then they are NaN."""

import numpy as np
import pytest

from grape6py import Grape6, Hermite, Leapfrog, Tree, plummer

torch = pytest.importorskip("torch")
cupy = pytest.importorskip("cupy")
pytestmark = pytest.mark.gpu
N, TRIES, EPS = 2000, 20, 0.05
CYCLES = 200_000_000  # a tenth of a second


@pytest.fixture(params=["default", "own"])
def current(request):
    """CuPy's current stream: the default one, or one that waits for no other by itself."""
    if request.param == "default":
        yield
        return
    with cupy.cuda.Stream(non_blocking=True):
        yield


@pytest.fixture
def side():
    """A stream of PyTorch's own."""
    return torch.cuda.Stream()


def late(side, *arrays):
    """Tensors that the stream is still writing."""
    truth = [torch.as_tensor(array, device="cuda") for array in arrays]
    made = [torch.full_like(t, torch.nan if t.is_floating_point() else -1) for t in truth]
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(CYCLES)
        for to, source in zip(made, truth, strict=True):
            to.copy_(source)
    assert not side.query(), "the tensors are there already: this tests nothing"
    return made


def host(found):
    """NumPy's copy of what came out: as PyTorch's, since tensors came in."""
    assert isinstance(found, torch.Tensor)
    assert found.is_cuda
    return found.cpu().numpy()


def close(found, expected):
    return np.abs(host(found) - expected).max() < 1e-6 * np.abs(expected).max()


@pytest.mark.usefixtures("current")
def test_trees(side):
    for seed in range(TRIES):
        mass, pos, vel = plummer(N, seed=seed)
        with Tree(*map(cupy.asarray, (pos, mass, vel))) as tree:
            targets = cupy.asarray(pos[:500]), cupy.asarray(vel[:500])
            expected = tree.forces(*targets, eps=EPS, self_index=np.arange(500))
            k_nearest = tree.nearest(4).index.get()
        with torch.cuda.stream(side), Tree(*late(side, pos, mass, vel)) as tree:
            targets = late(side, pos[:500], vel[:500], np.arange(500))
            found = tree.forces(*targets[:2], eps=EPS, self_index=targets[2])
            for ours, theirs in zip(found, expected, strict=True):
                assert close(ours, theirs.get())
            nearest = tree.nearest(4, late(side, pos)[0], self_index=cupy.arange(N))
            assert np.array_equal(host(nearest.index), k_nearest)


@pytest.mark.usefixtures("current")
@pytest.mark.parametrize("backend", ["cuda", "cpu"])
def test_sessions(side, backend):
    with Grape6(backend=backend) as grape, Grape6(backend=backend) as there:
        for seed in range(TRIES):
            mass, pos, vel = plummer(N, seed=seed)
            index = np.arange(N, dtype=np.int32)
            there.set_particles(mass, pos, vel)
            expected = there.forces(pos, vel, index, eps=EPS)
            with torch.cuda.stream(side):
                grape.set_particles(*late(side, mass, pos, vel))
                found = grape.forces(*late(side, pos, vel, index), eps=EPS)
            assert np.array_equal(host(found.acc), expected.acc)
            assert np.array_equal(host(found.jerk), expected.jerk)


@pytest.mark.usefixtures("current")
@pytest.mark.parametrize(("integration", "options"), [
    (Leapfrog, {"dt": 1 / 64}), (Leapfrog, {"dt_max": 1 / 32}),
    (Leapfrog, {"dt": 1 / 64, "backend": "cuda"}), (Hermite, {"backend": "cuda"}),
    (Hermite, {"backend": "cpu"})], ids=str)  # fmt: skip
def test_integrations(side, integration, options):
    for seed in range(TRIES):
        bodies, is_hermite = plummer(N, seed=seed), integration is Hermite
        arrays = bodies if is_hermite else map(cupy.asarray, bodies)
        expected = integration(*arrays, eps=EPS, **options)
        with torch.cuda.stream(side):
            found = integration(*late(side, *bodies), eps=EPS, **options)
        for one in (found, expected):
            one.evolve(1 / 64 if is_hermite else 1 / 32)
        if is_hermite:
            assert np.array_equal(found.pos.numpy(), expected.pos)
        else:
            assert close(found.pos, expected.pos.get())
