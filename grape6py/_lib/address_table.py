"""Which addresses of a session hold a particle, and of which index.

The library knows this too, but does not tell: ``Grape6`` needs it to make the particles
themselves the targets.
"""

from collections.abc import Callable

import numpy as np

from grape6py._arrays.kinds import AnyArray, Int32s, Untyped


class AddressTable:
    """Labels by address."""

    def __init__(self) -> None:
        self.labels = np.empty(0, np.int32)  # index of the particle at each address
        self.written = np.empty(0, bool)  # False for an address that was never written
        self._unused: int | None = None

    def __len__(self) -> int:
        """Number of addresses, up to the highest one written."""
        return len(self.labels)

    def labels_of(self, address: Int32s) -> Int32s:
        """Labels kept at these addresses; the address itself where nothing is."""
        labels = address.copy()
        known = address < len(self)
        known[known] = self.written[address[known]]
        labels[known] = self.labels[address[known]]
        return labels

    def replace(self, labels: Int32s) -> None:
        """Hold these labels at addresses 0, 1, 2, ... and nothing else."""
        self.labels, self.written = labels.copy(), np.ones(len(labels), bool)
        self._unused = None

    def update(self, address: Int32s, labels: Int32s) -> None:
        """Hold these labels at these addresses too."""
        grow = int(address.max(initial=-1)) + 1 - len(self)
        if grow > 0:
            self.labels = np.concatenate([self.labels, np.zeros(grow, np.int32)])
            self.written = np.concatenate([self.written, np.zeros(grow, bool)])
        self.labels[address] = labels
        self.written[address] = True
        self._unused = None

    def present(
        self, *arrays: Untyped, put: Callable[[AnyArray], Untyped] = np.asarray
    ) -> tuple[Untyped, ...]:
        """Rows of arrays, one row an address, where a particle is; `put` brings one to them."""
        written = None if self.written.all() else put(self.written)
        return arrays if written is None else tuple(array[written] for array in arrays)

    @property
    def unused_label(self) -> int:
        """Label that no particle has: -1, or the next lower one that is free."""
        if self._unused is None:
            label = -1
            while label in self.labels:
                label -= 1
            self._unused = label
        return self._unused
