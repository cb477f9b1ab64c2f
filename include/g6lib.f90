! g6lib.f90 - the GRAPE-6 host library (grape6py) for Fortran 2003 and later.
!
! Interfaces to every call of g6lib.h and its named constants; nothing else. Each
! function is the C function of that name: numbers go by value, arrays by reference.
! Old programs need no module: their CALL G6_OPEN(ID) reaches the same library through
! the names with an underscore, with all arguments by reference. In one program unit use
! either the module or those, not both.
!
!   use g6lib
!   ierr = g6_open(0)
!   ierr = g6_set_j_particle(0, i - 1, i, t, dt, m(i), k18, j6, a2, v(:, i), x(:, i))
!
! Conventions (more at each call, and in g6lib.h)
!   kinds      integer(c_int), real(c_double); vectors of n particles are x(3, n)
!   units      the caller's own, with G = 1
!   clusterid  any integer: a key to an independent set of j particles
!   address    slot in the j memory, counted from 0
!   index      the caller's own label; pairs with equal index are left out
!   arrays     belong to the caller; used only during the call, only the first ni (nj)
!              entries; assumed-size, so a contiguous array is passed without a copy
!   result     0 for success, a negative G6X_E_* for a fault; g6x_last_error has the text.
!              A force call that fails fills its outputs with quiet NaN
!   text       character buffers are filled with a final c_null_char; pass
!              character(len=80) and 80
module g6lib
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_float, c_int, c_long_long, c_ptr
   implicit none
   private :: c_char, c_double, c_float, c_int, c_long_long, c_ptr

   ! Fault codes: minus the row of the table in docs/errors.md.
   integer(c_int), parameter :: G6X_E_DEVICE_MEMORY = -1  ! device out of memory
   integer(c_int), parameter :: G6X_E_DEVICE_LOST = -2    ! device failed
   integer(c_int), parameter :: G6X_E_NO_DEVICE = -3      ! a device was demanded, none there
   integer(c_int), parameter :: G6X_E_RUNTIME = -4        ! CUDA runtime or compiler missing
   integer(c_int), parameter :: G6X_E_PYTHON = -5         ! Python side missing or broken
   integer(c_int), parameter :: G6X_E_J_NAN = -6          ! NaN or Inf in a j particle
   integer(c_int), parameter :: G6X_E_I_NAN = -7          ! NaN or Inf in an i particle
   integer(c_int), parameter :: G6X_E_RANGE = -8          ! a force does not fit a double
   integer(c_int), parameter :: G6X_E_ARGUMENT = -11      ! argument or option out of range
   integer(c_int), parameter :: G6X_E_ADDRESS = -13       ! negative j address
   integer(c_int), parameter :: G6X_E_NO_FIRSTHALF = -18  ! lasthalf without firsthalf
   integer(c_int), parameter :: G6X_E_MISMATCH = -20      ! lasthalf with other ni or nj
   integer(c_int), parameter :: G6X_E_NOT_OPEN = -21      ! nothing open, or cluster closed
   integer(c_int), parameter :: G6X_E_PIPE = -25          ! neighbour list of a pipe >= ni
   integer(c_int), parameter :: G6X_E_NULL = -26          ! null pointer
   integer(c_int), parameter :: G6X_E_OVERFLOW = -27      ! size beyond what can be counted
   integer(c_int), parameter :: G6X_E_MEMORY = -29        ! out of host memory
   integer(c_int), parameter :: G6X_E_FORK = -30          ! device used in a forked child
   integer(c_int), parameter :: G6X_E_VERIFY = -40        ! GRAPE6_VERIFY found a wrong result

   ! Options for g6x_set_int and its like.
   integer(c_int), parameter :: G6X_PRECISION = 1         ! G6X_GRAPE, _DOUBLE or _SINGLE
   integer(c_int), parameter :: G6X_THREADS = 2           ! 0: as the affinity mask allows
   integer(c_int), parameter :: G6X_ISA = 3               ! G6X_ISA_*
   integer(c_int), parameter :: G6X_JERK = 4              ! 0: no jerk, it comes as NaN
   integer(c_int), parameter :: G6X_SNAP = 5              ! 0: k18 not used in prediction
   integer(c_int), parameter :: G6X_NEIGHBOUR_SELF = 6    ! 1: a particle is in its own list
   integer(c_int), parameter :: G6X_SCALE_LENGTH = 7      ! length scale 2**value or G6X_AUTO
   integer(c_int), parameter :: G6X_SCALE_MASS = 8        ! likewise for masses
   integer(c_int), parameter :: G6X_SCALE_VELOCITY = 9    ! likewise for velocities
   integer(c_int), parameter :: G6X_VERIFY = 10           ! double: fraction of rows checked
   integer(c_int), parameter :: G6X_LOG = 11              ! process: 0 none, 1 faults, 2 info
   integer(c_int), parameter :: G6X_ON_ERROR = 12         ! process: 0 return codes, 1 abort
   integer(c_int), parameter :: G6X_NPIPES = 13           ! read only
   integer(c_int), parameter :: G6X_DEVICE = 14           ! read only: CUDA's number, -1: the CPU
   integer(c_int), parameter :: G6X_THETA = 15            ! double: opening angle of a tree
   integer(c_int), parameter :: G6X_TREE_METHOD = 16      ! G6X_TREE_FMM or G6X_TREE_BARNES_HUT
   integer(c_int), parameter :: G6X_TREE_ORDER = 17       ! order of expansions, 2 to 6
   integer(c_int), parameter :: G6X_ORIGIN_X = 18         ! double: places are relative to it;
   integer(c_int), parameter :: G6X_ORIGIN_Y = 19         ! NaN: from the data
   integer(c_int), parameter :: G6X_ORIGIN_Z = 20
   integer(c_int), parameter :: G6X_DRIFT_X = 21          ! likewise velocities
   integer(c_int), parameter :: G6X_DRIFT_Y = 22
   integer(c_int), parameter :: G6X_DRIFT_Z = 23

   integer(c_int), parameter :: G6X_GRAPE = 0, G6X_DOUBLE = 1, G6X_SINGLE = 2
   integer(c_int), parameter :: G6X_ISA_BEST = 0, G6X_ISA_BASE = 1
   integer(c_int), parameter :: G6X_ISA_AVX2 = 2, G6X_ISA_AVX512 = 3
   integer(c_int), parameter :: G6X_TREE_FMM = 0, G6X_TREE_BARNES_HUT = 1
   integer(c_int), parameter :: G6X_AUTO = -2147483647
   integer(c_int), parameter :: G6X_BACKEND_AUTO = 0, G6X_BACKEND_CPU = 1, G6X_BACKEND_CUDA = 2
   integer(c_int), parameter :: G6X_BACKEND_TREE = 3, G6X_BACKEND_CPU_TREE = 4
   integer(c_int), parameter :: G6X_BACKEND_CUDA_TREE = 5
   ! Rows of the partial sums of one particle.
   integer(c_int), parameter :: G6X_PARTIAL_WORDS = 32

   integer(c_int), parameter :: G6X_HERMITE_MOVE = 1, G6X_HERMITE_WRITE = 2

   ! An integration on the device, see g6lib.h: n particles; addresses of arrays by particle, and
   ! of those by row of a block.
   type, bind(c) :: g6x_hermite
      integer(c_int) :: n
      real(c_double) :: eta, dtmin, dtmax
      type(c_ptr) :: mass, rounding, t, dt, x, v, a, j
      type(c_ptr) :: address, xi, vi, acc, jerk, pot
   end type

   interface

      ! ---- opening and closing -------------------------------------------------------

      ! Opens a cluster; opening twice is fine.
      integer(c_int) function g6_open(clusterid) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid
      end function

      ! Releases a cluster with its j particles; closing twice or unopened is fine.
      integer(c_int) function g6_close(clusterid) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid
      end function

      ! Number of i particles that a caller sends per force call (48 unless configured);
      ! valid before g6_open. Larger blocks are accepted all the same.
      integer(c_int) function g6_npipes() bind(c)
         import :: c_int
      end function

      ! Recovery calls of the hardware: nothing to do here.
      integer(c_int) function g6_reset(clusterid) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid
      end function

      integer(c_int) function g6_reset_fofpga(clusterid) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid
      end function

      integer(c_int) function g6_reinitialize(clusterid) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid
      end function

      ! Fixed-point units of the hardware: ignored.
      integer(c_int) function g6_set_tunit(newtunit) bind(c)
         import :: c_int
         integer(c_int), value :: newtunit
      end function

      integer(c_int) function g6_set_xunit(newxunit) bind(c)
         import :: c_int
         integer(c_int), value :: newxunit
      end function

      ! Opens cluster 0 on the ndevice devices in list.
      integer(c_int) function g6_open_special(ndevice, list) bind(c)
         import :: c_int
         integer(c_int), value :: ndevice
         integer(c_int), intent(in) :: list(*)
      end function

      integer(c_int) function g6_open_special2(ndevice, list, nmax) bind(c)
         import :: c_int
         integer(c_int), value :: ndevice, nmax
         integer(c_int), intent(in) :: list(*)
      end function

      ! Devices that the chosen backend can use, at least 1.
      integer(c_int) function get_device_count() bind(c)
         import :: c_int
      end function

      ! ---- j particles ---------------------------------------------------------------

      ! Writes one j particle. tj: the time of x, v and the derivatives; dtj: its step
      ! (ignored); k18, j6, a2: d2a/dt2 / 18, da/dt / 6, a / 2.
      integer(c_int) function g6_set_j_particle(clusterid, address, index, tj, dtj, mass, &
                                                k18, j6, a2, v, x) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, address, index
         real(c_double), value :: tj, dtj, mass
         real(c_double), intent(in) :: k18(3), j6(3), a2(3), v(3), x(3)
      end function

      ! The same for a particle at rest that is not extrapolated.
      integer(c_int) function g6_set_j_particle_mxonly(clusterid, address, index, mass, x) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, address, index
         real(c_double), value :: mass
         real(c_double), intent(in) :: x(3)
      end function

      ! Time to which the j particles are predicted at the next firsthalf.
      integer(c_int) function g6_set_ti(clusterid, ti) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid
         real(c_double), value :: ti
      end function

      ! Buffering of the hardware's host interface: no-ops, since nothing is delayed.
      integer(c_int) function g6_initialize_jp_buffer(clusterid, size) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, size
      end function

      integer(c_int) function g6_flush_jp_buffer(clusterid) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid
      end function

      integer(c_int) function g6_flush_jp_buffer_and_multisend(clusterid, nclusters) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, nclusters
      end function

      integer(c_int) function g6_setup_njdata(clusterid, nj) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, nj
      end function

      integer(c_int) function force_j_particle_send() bind(c)
         import :: c_int
      end function

      ! Largest number of j particles that a cluster can hold.
      integer(c_int) function g6_getnjmax(clusterid) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid
      end function

      ! x and v of addresses 0 .. nj-1, predicted to the current time; zeros where unset.
      integer(c_int) function g6_get_predicted_j_particles(clusterid, nj, x, v) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj
         real(c_double), intent(out) :: x(3, *), v(3, *)
      end function

      ! x and v, as x6(6, nj), of nj particles from addr on in the cluster used last.
      integer(c_int) function get_j_part_data(addr, nj, x6) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: addr, nj
         real(c_double), intent(out) :: x6(6, *)
      end function

      ! ---- forces --------------------------------------------------------------------

      ! Starts the force of the j particles at addresses 0 .. nj-1 on ni particles at
      ! xi, vi. aold, j6old, phiold: ignored. eps2: softening length squared.
      ! h2(ni): squared radius of the neighbour sphere (r**2 + eps2 <= h2).
      ! Everything is copied.
      integer(c_int) function g6calc_firsthalf(clusterid, nj, ni, index, xi, vi, &
                                               aold, j6old, phiold, eps2, h2) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), aold(3, *), j6old(3, *), phiold(*)
         real(c_double), value :: eps2
         real(c_double), intent(in) :: h2(*)
      end function

      ! Waits and writes acc(3, ni), jerk(3, ni) and pot(ni) = -sum m / sqrt(r**2 + eps2).
      ! nj and ni as in firsthalf; index, xi, vi, eps2 and h2 are not read.
      integer(c_int) function g6calc_lasthalf(clusterid, nj, ni, index, xi, vi, eps2, h2, &
                                              acc, jerk, pot) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), h2(*)
         real(c_double), value :: eps2
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
      end function

      ! ... and nnbindex(ni), the index of the nearest j particle.
      integer(c_int) function g6calc_lasthalf2(clusterid, nj, ni, index, xi, vi, eps2, h2, &
                                               acc, jerk, pot, nnbindex) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), h2(*)
         real(c_double), value :: eps2
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
         integer(c_int), intent(out) :: nnbindex(*)
      end function

      ! ... and rnnb(ni), its distance (0 if there is none).
      integer(c_int) function g6calc_lasthalf2p(clusterid, nj, ni, index, xi, vi, eps2, h2, &
                                                acc, jerk, pot, nnbindex, rnnb) bind(c)
         import :: c_int, c_double, c_float
         integer(c_int), value :: clusterid, nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), h2(*)
         real(c_double), value :: eps2
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
         integer(c_int), intent(out) :: nnbindex(*)
         real(c_float), intent(out) :: rnnb(*)
      end function

      ! The same three under the names of libraries that build lists only here.
      integer(c_int) function g6calc_lasthalfn(clusterid, nj, ni, index, xi, vi, eps2, h2, &
                                               acc, jerk, pot) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), h2(*)
         real(c_double), value :: eps2
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
      end function

      integer(c_int) function g6calc_lasthalf2n(clusterid, nj, ni, index, xi, vi, eps2, h2, &
                                                acc, jerk, pot, nnbindex) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), h2(*)
         real(c_double), value :: eps2
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
         integer(c_int), intent(out) :: nnbindex(*)
      end function

      integer(c_int) function g6calc_lasthalf2np(clusterid, nj, ni, index, xi, vi, eps2, h2, &
                                                 acc, jerk, pot, nnbindex, rnnb) bind(c)
         import :: c_int, c_double, c_float
         integer(c_int), value :: clusterid, nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), h2(*)
         real(c_double), value :: eps2
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
         integer(c_int), intent(out) :: nnbindex(*)
         real(c_float), intent(out) :: rnnb(*)
      end function

      ! Softening per i particle: eps2(ni). mode is ignored.
      integer(c_int) function g6calc_firsthalf0(clusterid, nj, ni, index, xi, vi, &
                                                aold, j6old, phiold, eps2, h2, mode) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), aold(3, *), j6old(3, *), phiold(*)
         real(c_double), intent(in) :: eps2(*), h2(*)
         integer(c_int), value :: mode
      end function

      integer(c_int) function g6calc_lasthalf0(clusterid, nj, ni, index, xi, vi, eps2, h2, &
                                               acc, jerk, pot, mode) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), eps2(*), h2(*)
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
         integer(c_int), value :: mode
      end function

      ! ---- neighbour lists -----------------------------------------------------------

      ! Readies the lists of the last force call; lists of any length fit.
      integer(c_int) function g6_read_neighbour_list(clusterid) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid
      end function

      integer(c_int) function g6_read_neighbour_list_old(clusterid) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid
      end function

      ! List of the i particle at position ipipe, counted from 0: nbl(maxlength) holds
      ! indices in ascending order, nblen the true length. 1 if that is > maxlength.
      integer(c_int) function g6_get_neighbour_list(clusterid, ipipe, maxlength, nblen, &
                                                    nbl) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, ipipe, maxlength
         integer(c_int), intent(out) :: nblen, nbl(*)
      end function

      ! Lists are always sorted; the mode is stored and given back.
      integer(c_int) function g6_set_neighbour_list_sort_mode(mode) bind(c)
         import :: c_int
         integer(c_int), value :: mode
      end function

      integer(c_int) function g6_get_neighbour_list_sort_mode() bind(c)
         import :: c_int
      end function

      ! ---- oddities of particular hosts and boards -----------------------------------

      ! Ignored.
      integer(c_int) function g6_set_overflow_flag_test_mode(aflag, jflag, pflag) bind(c)
         import :: c_int
         integer(c_int), value :: aflag, jflag, pflag
      end function

      ! Prints nothing.
      integer(c_int) function g6_print_chip_status(clusterid) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid
      end function

      ! Sends one particle at rest to nclusters clusters from clusterid on. The one call
      ! whose arguments all go by reference.
      integer(c_int) function g6_set_j_particle_multisend_mxfast_( &
         clusterid, nclusters, address, index, mass, x) &
         bind(c, name='g6_set_j_particle_multisend_mxfast_')
         import :: c_int, c_double
         integer(c_int), intent(in) :: clusterid, nclusters, address, index
         real(c_double), intent(in) :: mass, x(3)
      end function

      ! The multi-card library's cluster-less forms: one memory of their own.
      integer(c_int) function g6_open_all() bind(c)
         import :: c_int
      end function

      integer(c_int) function g6_close_all() bind(c)
         import :: c_int
      end function

      integer(c_int) function g6_reset_all() bind(c)
         import :: c_int
      end function

      integer(c_int) function g6_reset_fofpga_all() bind(c)
         import :: c_int
      end function

      integer(c_int) function g6_set_ti_all(ti) bind(c)
         import :: c_int, c_double
         real(c_double), value :: ti
      end function

      integer(c_int) function g6_set_j_particle_all(address, index, tj, dtj, mass, &
                                                    k18, j6, a2, v, x) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: address, index
         real(c_double), value :: tj, dtj, mass
         real(c_double), intent(in) :: k18(3), j6(3), a2(3), v(3), x(3)
      end function

      integer(c_int) function g6_set_j_particle_mxonly_all(address, index, mass, x) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: address, index
         real(c_double), value :: mass
         real(c_double), intent(in) :: x(3)
      end function

      integer(c_int) function g6calc_firsthalf_all(nj, ni, index, xi, vi, &
                                                   aold, j6old, phiold, eps2, h2) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), aold(3, *), j6old(3, *), phiold(*)
         real(c_double), value :: eps2
         real(c_double), intent(in) :: h2(*)
      end function

      integer(c_int) function g6calc_lasthalf_all(nj, ni, index, xi, vi, eps2, h2, &
                                                  acc, jerk, pot) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), h2(*)
         real(c_double), value :: eps2
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
      end function

      integer(c_int) function g6calc_lasthalf2_all(nj, ni, index, xi, vi, eps2, h2, &
                                                   acc, jerk, pot, nnbindex) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), h2(*)
         real(c_double), value :: eps2
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
         integer(c_int), intent(out) :: nnbindex(*)
      end function

      integer(c_int) function g6calc_firsthalf0_all(nj, ni, index, xi, vi, &
                                                    aold, j6old, phiold, eps2, h2, mode) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), aold(3, *), j6old(3, *), phiold(*)
         real(c_double), intent(in) :: eps2(*), h2(*)
         integer(c_int), value :: mode
      end function

      integer(c_int) function g6calc_lasthalf0_all(nj, ni, index, xi, vi, eps2, h2, &
                                                   acc, jerk, pot, mode) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), eps2(*), h2(*)
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
         integer(c_int), value :: mode
      end function

      integer(c_int) function g6_initialize_jp_buffer_all(size) bind(c)
         import :: c_int
         integer(c_int), value :: size
      end function

      integer(c_int) function g6_flush_jp_buffer_all() bind(c)
         import :: c_int
      end function

      integer(c_int) function g6_read_neighbour_list_all() bind(c)
         import :: c_int
      end function

      integer(c_int) function g6_get_neighbour_list_all(ipipe, maxlength, nblen, nbl) bind(c)
         import :: c_int
         integer(c_int), value :: ipipe, maxlength
         integer(c_int), intent(out) :: nblen, nbl(*)
      end function

      ! The group that firsthalf and lasthalf were made of: i particles one by one into
      ! pipes (address from 0), then the numbers of i and j particles, then the result.
      integer(c_int) function g6_set_nip(clusterid, nip) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, nip
      end function

      integer(c_int) function g6_set_njp(clusterid, njp) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, njp
      end function

      ! Ignored.
      integer(c_int) function g6_set_i_particle_scales_from_real_value( &
         clusterid, address, acc, jerk, phi, jfactor, ffactor) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, address
         real(c_double), intent(in) :: acc(3), jerk(3)
         real(c_double), value :: phi, jfactor, ffactor
      end function

      integer(c_int) function g6_set_i_particle(clusterid, address, index, x, v, eps2, h2) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, address, index
         real(c_double), intent(in) :: x(3), v(3)
         real(c_double), value :: eps2, h2
      end function

      ! flag(nip): 0, or the code of the fault.
      integer(c_int) function g6_get_force(clusterid, acc, jerk, phi, flag) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), phi(*)
         integer(c_int), intent(out) :: flag(*)
      end function

      integer(c_int) function g6_get_force_etc(clusterid, acc, jerk, phi, nnbindex, flag) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), phi(*)
         integer(c_int), intent(out) :: nnbindex(*), flag(*)
      end function

      ! ---- g6x: what the hardware library did not have -------------------------------

      ! Text of the last fault or warning of a cluster (of the process, if the cluster is
      ! unknown), cut to length characters with its final c_null_char. Returns the code,
      ! 0 if there is none.
      integer(c_int) function g6x_last_error(clusterid, buffer, length) bind(c)
         import :: c_int, c_char
         integer(c_int), value :: clusterid, length
         character(kind=c_char), intent(out) :: buffer(*)
      end function

      integer(c_int) function g6x_last_warning(clusterid, buffer, length) bind(c)
         import :: c_int, c_char
         integer(c_int), value :: clusterid, length
         character(kind=c_char), intent(out) :: buffer(*)
      end function

      integer(c_int) function g6x_clear_error(clusterid) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid
      end function

      ! "grape6py MAJOR.MINOR.PATCH"; returns 10000 major + 100 minor + patch.
      integer(c_int) function g6x_version(buffer, length) bind(c)
         import :: c_int, c_char
         character(kind=c_char), intent(out) :: buffer(*)
         integer(c_int), value :: length
      end function

      ! g6_open on a given backend (G6X_BACKEND_*), whatever GRAPE6_BACKEND says.
      integer(c_int) function g6x_open(clusterid, backend) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, backend
      end function

      ! Backend and instruction set or device of an open cluster: "cpu avx512".
      integer(c_int) function g6x_backend(clusterid, buffer, length) bind(c)
         import :: c_int, c_char
         integer(c_int), value :: clusterid, length
         character(kind=c_char), intent(out) :: buffer(*)
      end function

      ! Set or read an option: G6X_E_ARGUMENT for an unknown key or a value out of range.
      integer(c_int) function g6x_set_int(clusterid, key, value) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, key, value
      end function

      integer(c_int) function g6x_get_int(clusterid, key, value) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, key
         integer(c_int), intent(out) :: value
      end function

      integer(c_int) function g6x_set_double(clusterid, key, value) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, key
         real(c_double), value :: value
      end function

      integer(c_int) function g6x_get_double(clusterid, key, value) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, key
         real(c_double), intent(out) :: value
      end function

      ! Scale exponents (length, mass, velocity) that a force call with nj would use.
      integer(c_int) function g6x_get_scale(clusterid, nj, exponent) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, nj
         integer(c_int), intent(out) :: exponent(3)
      end function

      ! Where such a call has its origin of places and of velocities.
      integer(c_int) function g6x_get_origin(clusterid, nj, origin, drift) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj
         real(c_double), intent(out) :: origin(3), drift(3)
      end function

      ! Writes n j particles at once: mass(n), x(3, n). The others are addresses of arrays
      ! (c_loc), or c_null_ptr: for address (integer(n)), slots 0 .. n-1 in order; for
      ! index (integer(n)), the address; for tj, dtj (real(n)), k18, j6, a2, v
      ! (real(3, n)), zeros. Returns the first fault met; the others are written.
      integer(c_int) function g6x_set_j_particles(clusterid, n, address, index, tj, dtj, mass, &
                                                  k18, j6, a2, v, x) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: clusterid, n
         type(c_ptr), value :: address, index, tj, dtj
         real(c_double), intent(in) :: mass(*)
         type(c_ptr), value :: k18, j6, a2, v
         real(c_double), intent(in) :: x(3, *)
      end function

      ! Arrays in the memory of the cluster's device (option G6X_DEVICE): their addresses there
      ! (c_devloc of CUDA Fortran), x and its like (3, n). stream: a CUDA stream, c_null_ptr for
      ! the default one. As g6x_set_j_particles, but after a fault none was written.
      integer(c_int) function g6x_set_j_particles_device(clusterid, n, address, index, tj, mass, &
                                                         k18, j6, a2, v, x, stream) bind(c)
         import :: c_int, c_ptr
         integer(c_int), value :: clusterid, n
         type(c_ptr), value :: address, index, tj, mass, k18, j6, a2, v, x, stream
      end function

      ! As g6_get_predicted_j_particles; ends the last force call.
      integer(c_int) function g6x_get_predicted_j_particles_device(clusterid, nj, x, v, stream) &
         bind(c)
         import :: c_int, c_ptr
         integer(c_int), value :: clusterid, nj
         type(c_ptr), value :: x, v, stream
      end function

      ! A whole force call. h2, nearest, distance (real(4)) may be c_null_ptr; without h2 there are
      ! no lists.
      integer(c_int) function g6x_forces_device(clusterid, nj, ni, index, x, v, eps2, h2, acc, &
                                                jerk, pot, nearest, distance, stream) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: clusterid, nj, ni
         type(c_ptr), value :: index, x, v
         real(c_double), value :: eps2
         type(c_ptr), value :: h2, acc, jerk, pot, nearest, distance, stream
      end function

      ! Block steps on the host, by the fourth-order Hermite scheme: particles address(ni)
      ! (0-based) of t(n), dt(n), x, v, a, j(3, n), predicted to `time`.
      integer(c_int) function g6x_hermite_predict(ni, address, time, t, x, v, a, j, xi, vi) &
         bind(c)
         import :: c_int, c_double
         integer(c_int), value :: ni
         integer(c_int), intent(in) :: address(*)
         real(c_double), value :: time
         real(c_double), intent(in) :: t(*), x(3, *), v(3, *), a(3, *), j(3, *)
         real(c_double), intent(out) :: xi(3, *), vi(3, *)
      end function

      ! ... corrected with acc and jerk, moved there, and dt their next steps. noise, dt: addresses
      ! of arrays (c_loc), or c_null_ptr: no errors of acc known; only xi and vi are written.
      integer(c_int) function g6x_hermite_correct(ni, address, time, eta, dtmin, dtmax, acc, &
                                                  jerk, noise, t, dt, x, v, a, j, xi, vi) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: ni
         integer(c_int), intent(in) :: address(*)
         real(c_double), value :: time, eta, dtmin, dtmax
         real(c_double), intent(in) :: acc(3, *), jerk(3, *)
         type(c_ptr), value :: noise
         real(c_double), intent(inout) :: t(*)
         type(c_ptr), value :: dt
         real(c_double), intent(inout) :: x(3, *), v(3, *), a(3, *), j(3, *)
         real(c_double), intent(out) :: xi(3, *), vi(3, *)
      end function

      ! The same for particles that live on the device, all addresses its own: type(g6x_hermite).
      ! A block step is next, predict, g6x_forces_device, correct; see g6lib.h.
      integer(c_int) function g6x_hermite_next_device(clusterid, h, time, stream) bind(c)
         import :: c_int, c_double, c_ptr, g6x_hermite
         integer(c_int), value :: clusterid
         type(g6x_hermite), intent(in) :: h
         real(c_double), intent(out) :: time
         type(c_ptr), value :: stream
      end function

      integer(c_int) function g6x_hermite_predict_device(clusterid, h, ni, time, stream) bind(c)
         import :: c_int, c_double, c_ptr, g6x_hermite
         integer(c_int), value :: clusterid, ni
         type(g6x_hermite), intent(in) :: h
         real(c_double), value :: time
         type(c_ptr), value :: stream
      end function

      ! what: G6X_HERMITE_MOVE + G6X_HERMITE_WRITE, or one of them, or 0.
      integer(c_int) function g6x_hermite_correct_device(clusterid, h, ni, time, what, stream) &
         bind(c)
         import :: c_int, c_double, c_ptr, g6x_hermite
         integer(c_int), value :: clusterid, ni, what
         type(g6x_hermite), intent(in) :: h
         real(c_double), value :: time
         type(c_ptr), value :: stream
      end function

      ! Trees: octrees that a program makes itself, apart from clusters. x(3, n), mass(n); v: the
      ! address of v(3, n) (c_loc), or c_null_ptr: no jerk is wanted. A number > 0, or a code.
      integer(c_int) function g6x_tree_open(n, x, v, mass) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: n
         real(c_double), intent(in) :: x(3, *)
         type(c_ptr), value :: v
         real(c_double), intent(in) :: mass(*)
      end function

      integer(c_int) function g6x_tree_close(tree) bind(c)
         import :: c_int
         integer(c_int), value :: tree
      end function

      ! key: G6X_THREADS or G6X_ISA.
      integer(c_int) function g6x_tree_set_int(tree, key, value) bind(c)
         import :: c_int
         integer(c_int), value :: tree, key, value
      end function

      ! Addresses of arrays, or c_null_ptr: x, v(3, ni), the tree's own particles without x;
      ! self(ni) (integer), particles counted from 0; last_acc(ni); jerk(3, ni).
      integer(c_int) function g6x_tree_forces(tree, ni, x, v, self, eps2, method, order, theta, &
                                              last_acc, bound, acc, jerk, pot) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: tree, ni, method, order
         type(c_ptr), value :: x, v, self, last_acc, jerk
         real(c_double), value :: eps2, theta, bound
         real(c_double), intent(out) :: acc(3, *), pot(*)
      end function

      ! x, self as above; start(ni + 1) (integer(c_long_long)) and found (integer) likewise: with
      ! c_null_ptr the particles are only counted. Both they and start count from 0.
      integer(c_int) function g6x_tree_within(tree, ni, x, self, h2, start, count, found) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: tree, ni
         type(c_ptr), value :: x, self, start, found
         real(c_double), intent(in) :: h2(*)
         integer(c_int), intent(out) :: count(*)
      end function

      integer(c_int) function g6x_tree_nearest(tree, ni, x, self, k, number, r2) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: tree, ni, k
         type(c_ptr), value :: x, self
         integer(c_int), intent(out) :: number(k, *)
         real(c_double), intent(out) :: r2(k, *)
      end function

      ! Many walks in one call: targets i_start(w) to i_start(w + 1) - 1 of xi, from 0 on, feel
      ! entries j_start(w) to j_start(w + 1) - 1 of j_list, which are numbers, from 0, of xj, mj;
      ! or of xj and mj themselves, if j_list is c_null_ptr (else c_loc of an integer array).
      integer(c_int) function g6x_walks(clusterid, nwalks, i_start, xi, j_start, j_list, nj, xj, &
                                        mj, eps2, acc, pot) bind(c)
         import :: c_int, c_long_long, c_double, c_ptr
         integer(c_int), value :: clusterid, nwalks, nj
         integer(c_long_long), intent(in) :: i_start(*), j_start(*)
         real(c_double), intent(in) :: xi(3, *), xj(3, *), mj(*)
         type(c_ptr), value :: j_list
         real(c_double), value :: eps2
         real(c_double), intent(inout) :: acc(3, *), pot(*)
      end function

      ! The same in two halves, with arrays of addresses (c_loc): of each walk's targets, particles
      ! and cells, ni, nj and nc(nwalks) of them; nc, xc, mc may be c_null_ptr.
      integer(c_int) function g6x_walks_dispatch(clusterid, tag, nwalks, ni, xi, nj, xj, mj, nc, &
                                                 xc, mc, eps2) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: clusterid, tag, nwalks
         integer(c_int), intent(in) :: ni(*), nj(*)
         type(c_ptr), intent(in) :: xi(*), xj(*), mj(*)
         type(c_ptr), value :: nc, xc, mc
         real(c_double), value :: eps2
      end function

      integer(c_int) function g6x_walks_retrieve(clusterid, tag, nwalks, ni, acc, pot) bind(c)
         import :: c_int, c_ptr
         integer(c_int), value :: clusterid, tag, nwalks
         integer(c_int), intent(in) :: ni(*)
         type(c_ptr), intent(in) :: acc(*), pot(*)
      end function

      ! Order-free partial sums: words(G6X_PARTIAL_WORDS, ni), readable between firsthalf
      ! and the next one. Rows made with equal scales may be added in any order.
      integer(c_int) function g6x_get_partial(clusterid, ni, words) bind(c)
         import :: c_int, c_long_long, G6X_PARTIAL_WORDS
         integer(c_int), value :: clusterid, ni
         integer(c_long_long), intent(out) :: words(G6X_PARTIAL_WORDS, *)
      end function

      integer(c_int) function g6x_add_partial(ni, sum, words) bind(c)
         import :: c_int, c_long_long, G6X_PARTIAL_WORDS
         integer(c_int), value :: ni
         integer(c_long_long), intent(inout) :: sum(G6X_PARTIAL_WORDS, *)
         integer(c_long_long), intent(in) :: words(G6X_PARTIAL_WORDS, *)
      end function

      integer(c_int) function g6x_from_partial(ni, words, acc, jerk, pot) bind(c)
         import :: c_int, c_double, c_long_long, G6X_PARTIAL_WORDS
         integer(c_int), value :: ni
         integer(c_long_long), intent(in) :: words(G6X_PARTIAL_WORDS, *)
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
      end function

   end interface

end module g6lib
