"""Checks of what callers hand in, before any of it reaches the library.

Every function returns a contiguous array of the C type and raises a typed error, an ArgumentError
if not documented otherwise, that names the argument, the first bad entry and what would be right.
``xp`` is the module that makes the arrays: NumPy, or CuPy for those of a CUDA device.
"""

import math
import operator
import reprlib
from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from grape6py._arrays import quantities
from grape6py._arrays.kinds import AnyArray, ArrayModule, Floats, Int32s, Int64s, Shape, Untyped
from grape6py.errors import ArgumentError, NotFiniteError, SizeError, meant

INT_MAX = 2**31 - 1
T = TypeVar("T")


def floats(name: str, values: object, shape: Shape, labels: AnyArray | None = None) -> Floats:
    """`values` as finite float64 of `shape`; None in `shape` stands for any length.

    A scalar is repeated if the shape has one, known dimension. `labels` are the indices of the
    particles, for the message of a NotFiniteError.
    """
    array = any_floats(name, values, shape)
    check_finite(name, array, labels)
    return array


def order(call: str, first: object, second: object) -> None:
    """Raise an ArgumentError if arguments of a call were given in another order: a vector for each
    particle where a number is due, and a number where a vector is."""
    shapes = [shape(value) for value in (first, second)]
    expected = call[call.index("(") + 1 : call.index(")")].split(", ")
    depth = [1 if name == "mass" else 2 for name in expected[:2]]
    if [len(shape) for shape in shapes] == depth[::-1] and depth[0] != depth[1]:
        raise ArgumentError(
            f"{expected[0]} has shape {shapes[0]} and {expected[1]} has {shapes[1]}: the order is "
            f"{call}; give them by keyword, {', '.join(f'{name}=...' for name in expected)}"
        )


def shape(value: Untyped) -> tuple[int, ...]:
    """The shape of an array, or of what lists would make; () for what is none."""
    try:
        return tuple(value.shape) if hasattr(value, "shape") else np.shape(value)
    except (TypeError, ValueError, RuntimeError):  # no array: refused by its name later
        return ()


def length(value: Untyped) -> int:
    """Number of rows; 0 of what is no array."""
    return (*shape(value), 0)[0]


def check_finite(
    name: str, array: AnyArray, labels: AnyArray | None = None, xp: ArrayModule = np
) -> None:
    """Raise what :func:`floats` does if a NaN or an infinity is in an array that it made."""
    finite = xp.isfinite(array)
    if not finite.all():
        row = int(xp.argmin(finite.reshape(len(array), -1).all(axis=1)))
        label = "" if labels is None else f" (the particle of index {labels[row]})"
        raise NotFiniteError(f"{name}[{row}]{label} is not finite: {array[row]}")


def numbers(name: str, values: object, xp: ArrayModule = np) -> AnyArray:
    """`values` as an array, of the kind that they are.

    The one rule for what NumPy would turn into numbers without a word: values that a mask hides,
    dates and times, and quantities. A masked array that hides nothing is an array like any other.
    """
    values = quantities.number(name, values) if quantities.holds_quantity(values) else values
    try:
        array: AnyArray = xp.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # the last one of PyTorch
        raise ArgumentError(f"{name} is not an array of real numbers: {error}") from error
    if array.dtype.kind in "mM":
        raise ArgumentError(f"{name} is not an array of real numbers: it holds {array.dtype}")
    if _is_masked(values, array.ndim):
        raise ArgumentError(
            f"{name} is a masked array that hides values: leave those out, or fill them "
            "(numpy.ma.filled)"
        )
    return array


def _is_masked(values: object, depth: int) -> bool:
    """Whether a mask hides anything of an array, or of one in lists up to `depth` deep."""
    if isinstance(values, np.ndarray):  # astropy's masked arrays are none of numpy.ma
        mask = getattr(values, "mask", None)
        return mask is not None and bool(np.any(mask))
    if depth == 0 or not isinstance(values, list | tuple):
        return False
    # By their types first: a long list of floats is passed over quickly.
    if not any(issubclass(kind, list | tuple | np.ndarray) for kind in set(map(type, values))):
        return False
    return any(_is_masked(value, depth - 1) for value in values)


def reals(name: str, values: object, xp: ArrayModule = np) -> Floats:
    """`values` as float64, of any shape; NaN and infinities pass."""
    given = numbers(name, values, xp)
    try:
        if given.dtype.kind == "c":
            raise TypeError("it is complex")
        array: Floats = xp.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} is not an array of real numbers: {error}") from error
    return array.reshape(given.shape)  # which was () of a scalar


def any_floats(name: str, values: object, shape: Shape, xp: ArrayModule = np) -> Floats:
    """Like :func:`floats`, but NaN and infinities pass."""
    given = array = reals(name, values, xp)
    if given.ndim == 0 and len(shape) == 1 and shape[0] is not None:
        array = xp.full(shape, given)
    requested = tuple("n" if length is None else length for length in shape)
    if array.ndim != len(shape) or any(
        want not in ("n", have) for want, have in zip(requested, array.shape, strict=True)
    ):
        expected = f"({', '.join(map(str, requested))}{',' * (len(requested) == 1)})"
        raise ArgumentError(f"{name} has shape {given.shape}, not {expected}")
    return array


def ints(name: str, values: object, n: int | None = None, xp: ArrayModule = np) -> Int32s:
    """`values` as int32 of shape (n,); a SizeError if one does not fit in 32 bits."""
    array = numbers(name, values, xp)
    if array.size == 0:
        array = array.astype(np.int32)
    if array.dtype == object and all(isinstance(value, int) for value in array.flat):
        raise SizeError(f"{name} holds integers beyond 32 bits")
    if array.dtype.kind not in "iu":
        raise ArgumentError(f"{name} holds {array.dtype}, not integers")
    if array.ndim != 1 or n not in (None, len(array)):
        raise ArgumentError(f"{name} has shape {array.shape}, not ({'n' if n is None else n},)")
    if array.size and array.dtype != np.int32:
        least, largest = int(array.min()), int(array.max())
        if least < -INT_MAX - 1 or largest > INT_MAX:
            raise SizeError(f"{name} holds integers beyond 32 bits: {least} to {largest}")
    found: Int32s = xp.ascontiguousarray(array, dtype=np.int32)
    return found


def offsets(name: str, values: object, end: int) -> Int64s:
    """`values` as int64, where the parts of an array of length `end` begin, and the last ends."""
    array = numbers(name, values)
    if array.dtype.kind not in "iu" or array.ndim != 1 or not len(array):
        raise ArgumentError(f"{name} is no row of integers: the beginnings of parts, and the end")
    array = np.ascontiguousarray(array, dtype=np.int64)
    if array[0] < 0 or array[-1] > end or (np.diff(array) < 0).any():
        raise ArgumentError(f"{name} does not ascend from 0 or above to {end} or below")
    return array


def squares(radii: Floats, xp: ArrayModule = np) -> Floats:
    """Squares of radii; -1 where one is negative or NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        found: Floats = xp.where(radii >= 0, radii * radii, -1.0)
        return found


def number(name: str, value: Untyped, *, negative: bool = True) -> float:
    """`value` as a finite float, negative only if allowed."""
    if quantities.is_quantity(value):
        value = quantities.number(name, value)
    if _is_no_number(value):
        raise ArgumentError(f"{name} = {reprlib.repr(value)} is not a number")
    try:
        real = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"{name} = {reprlib.repr(value)} is not a number") from error
    if not math.isfinite(real) or (real < 0 and not negative):
        kind = "a finite number" if negative else "a finite number >= 0"
        raise ArgumentError(f"{name} = {real} is not {kind}")
    return real


def _is_no_number(value: object) -> bool:
    """Whether a scalar is what :func:`numbers` refuses."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return kind in ("m", "M", "c") or _is_masked(value, 0)


def softening(eps: object) -> tuple[float, float]:
    """A softening length and its square."""
    real = number("eps", eps, negative=False)
    return real, number("eps^2", real * real)


def lengths_of(place: Untyped, eps: Untyped, n: int) -> Untyped:
    """Each of n particles' own softening, in an array of a place."""
    if not shape(getattr(eps, "number", eps)):
        raise ArgumentError(f"eps = {eps}: give an array of {n}, or one eps for all of a sum")
    found = place.floats("eps", eps, (n,)) + 0.0  # a copy
    if n and not (float(found.min()) >= 0 and float(found.max()) < math.inf):
        place.check()
        raise ArgumentError(f"eps[{int(found.argmin())}] = {float(found.min())} is negative")
    return found


def positive(name: str, value: object) -> float:
    """`value` as a finite float above zero."""
    real = number(name, value)
    if real <= 0:
        raise ArgumentError(f"{name} = {real} is not above zero")
    return real


def integer(name: str, value: Untyped, least: int = -INT_MAX) -> int:
    """`value` as an int of 32 bits, not below the least one."""
    if quantities.is_quantity(value):
        value = quantities.number(name, value)
    given: Untyped = None if _is_no_number(value) else value
    try:
        is_whole = isinstance(given, float) and given.is_integer()  # as 1e3
        whole = int(given) if is_whole else operator.index(given)
    except TypeError:
        raise ArgumentError(f"{name} = {reprlib.repr(value)} is not an integer") from None
    if abs(whole) > INT_MAX:
        raise ArgumentError(f"{name} = {reprlib.repr(value)} is not an integer of 32 bits")
    if whole < least:
        raise ArgumentError(f"{name} = {value} is not at least {least}")
    return whole


def choice(name: str, value: object, known: Mapping[str, T]) -> T:
    """Look `value` up in the dictionary `known`."""
    if not isinstance(value, str) or value not in known:
        hint = meant(value, known) if isinstance(value, str) else ""
        raise ArgumentError(f"{name} = {value!r} is unknown{hint}; there are: {', '.join(known)}")
    return known[value]


def bodies(
    called: str, mass: Untyped, pos: Untyped, vel: Untyped, ids: Untyped
) -> tuple[Untyped, ...]:
    """Masses, positions, velocities and numbers that were given one by one, or first, as Particles
    or as a Snapshot, which has ids; masked arrays have something else of the name."""
    call = f"{called}(mass, pos, vel)"
    if hasattr(mass, "_fields"):
        ids = getattr(mass, "ids", None) if ids is None else ids
        mass, pos, vel = mass if pos is None else (mass, pos, vel)
    for name, array in {"pos": pos, "vel": vel}.items():
        if array is None:
            raise TypeError(f"{name} is missing: it is {call}, or Particles in their place")
    order(call, mass, pos)
    return mass, pos, vel, ids
