"""HDF5 files of a run: one for each output, any of which can be gone on from, and their index.

The outputs of ``cluster.h5`` are ``cluster/000000.hdf5``, ``cluster/000001.hdf5``, ...
(output_file.py); of a Leapfrog of several ranks each is in numbered files, ``000000.0.hdf5``,
``000000.1.hdf5``, ..., of which each rank writes its own. ``cluster.h5`` itself is added to with
each of them. Its groups ``000000``, ``000001``, ... are links to the groups `grape6py` of the
outputs, or have such links to numbered files. Its attributes are the settings of the integration
(:attr:`Hermite.settings`), `integrator` if it is "leapfrog", `precision`, `backend`,
`initial_energy`, `run` (an id), `changes` of settings by a restart, and what the writer adds. Its
group `index` has a row for each output (run_index.Table).

Every file is written aside, synced and renamed, with a checksum at its end, so that whatever was
saved is whole at every moment, and damage is found. If the index is lost or damaged, it is made
again from the outputs.
"""

from typing import TypeAlias

from grape6py.files.runs.outputs import history as history
from grape6py.files.runs.reader import Record as Record
from grape6py.files.runs.reader import read_snapshot as read_snapshot
from grape6py.files.runs.reader import record as record
from grape6py.files.runs.reader import units_of as units_of
from grape6py.files.runs.writer import Writer as Writer
from grape6py.files.runs.writer import describe as describe
from grape6py.files.runs.writer import save as save
from grape6py.integrators.hermite import Hermite
from grape6py.integrators.leapfrog import Leapfrog
from grape6py.integrators.restored import note_change as note_change
from grape6py.integrators.restored import restore as restore

Cluster: TypeAlias = Hermite | Leapfrog
read_particles = read_snapshot
