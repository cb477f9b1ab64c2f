! g6lib.f90 - the GRAPE-6 host library (grape6py) for Fortran 2003 and later.
!
! Interfaces to every call of g6lib.h and its named constants; nothing else. Each
! function is the C function of that name: numbers go by value, arrays by reference. What a
! call does, and what holds for all, is in g6lib.h; here is what Fortran has otherwise.
! Old programs need no module: their CALL G6_OPEN(ID) reaches the same library through
! the names with an underscore, with all arguments by reference. In one program unit use
! either the module or those, not both.
!
!   use g6lib
!   ierr = g6_open(0)
!   ierr = g6_set_j_particle(0, i - 1, i, t, dt, m(i), k18, j6, a2, v(:, i), x(:, i))
!
! Conventions
!   kinds      integer(c_int), real(c_double); vectors of n particles are x(3, n)
!   address    slot in the j memory; as ipipe, self and entries of lists, counted from 0
!   arrays     assumed-size, so that a contiguous array is passed without a copy; what may be
!              absent is a type(c_ptr): c_loc of the array, or c_null_ptr
!   text       character buffers are filled with a final c_null_char; pass
!              character(len=80) and 80
module g6lib
   use, intrinsic :: iso_c_binding, only: c_char, c_double, c_float, c_int, c_long_long, &
      c_null_ptr, c_ptr, c_signed_char
   implicit none
   private :: c_char, c_double, c_float, c_int, c_long_long, c_null_ptr, c_ptr, c_signed_char

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
   integer(c_int), parameter :: G6X_E_FORK = -30          ! in a forked child: a device, or a call
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
   integer(c_int), parameter :: G6X_LOG = 11              ! process: 0 none, 1 errors, 2 info
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

   integer(c_int), parameter :: G6X_GRAPE = 0, G6X_DOUBLE = 1, G6X_SINGLE = 2, G6X_AUTO_MODE = 3
   integer(c_int), parameter :: G6X_ISA_BEST = 0, G6X_ISA_BASE = 1
   integer(c_int), parameter :: G6X_ISA_AVX2 = 2, G6X_ISA_AVX512 = 3
   integer(c_int), parameter :: G6X_ISA_NEON = 4
   integer(c_int), parameter :: G6X_TREE_FMM = 0, G6X_TREE_BARNES_HUT = 1
   integer(c_int), parameter :: G6X_TREE_MOMENTUM = 16    ! added to a method
   integer(c_int), parameter :: G6X_TREE_WHOLE = 13, G6X_TREE_REGION = 7
   integer(c_int), parameter :: G6X_AUTO = -2147483647
   integer(c_int), parameter :: G6X_BACKEND_AUTO = 0, G6X_BACKEND_CPU = 1, G6X_BACKEND_CUDA = 2
   integer(c_int), parameter :: G6X_BACKEND_TREE = 3, G6X_BACKEND_CPU_TREE = 4
   integer(c_int), parameter :: G6X_BACKEND_CUDA_TREE = 5
   ! Rows of the partial sums of one particle.
   integer(c_int), parameter :: G6X_PARTIAL_WORDS = 32
   integer(c_int), parameter :: G6X_PARTIAL_TOPS = 6
   integer(c_int), parameter :: G6X_PARTIAL_LIMB = 6
   integer(c_int), parameter :: G6X_PARTIAL_LIMBS = 21
   integer(c_int), parameter :: G6X_SAMPLE_WORDS = 105
   integer(c_int), parameter :: G6X_COUNT_WORDS = 6600
   integer(c_int), parameter :: G6X_PART_BYTES = 192

   integer(c_int), parameter :: G6X_HERMITE_DONE = 0, G6X_HERMITE_UNFINISHED = 1
   integer(c_int), parameter :: G6X_HERMITE_PAUSED = 2, G6X_HERMITE_WATCHED = 3
   integer(c_int), parameter :: G6X_HERMITE_MERGE = 4
   integer(c_int), parameter :: G6X_HERMITE_MOVE = 1, G6X_HERMITE_WRITE = 2

   integer(c_int), parameter :: G6X_FIELD_PLUMMER = 1, G6X_FIELD_MIYAMOTO_NAGAI = 2
   integer(c_int), parameter :: G6X_FIELD_NFW = 3, G6X_FIELD_LOGARITHMIC = 4, G6X_FIELD_CUTOFF = 5
   integer(c_int), parameter :: G6X_FIELD_TERMS = 8
   integer(c_int), parameter :: G6X_FEW_MOST = 64

   type, bind(c) :: g6x_field_term
      integer(c_int) :: kind = 0
      real(c_double) :: p(3) = 0
   end type

   type, bind(c) :: g6x_field
      integer(c_int) :: terms = 0
      type(g6x_field_term) :: term(8)
      real(c_double) :: omega = 0, epoch = 0
      integer(c_int) :: nodes = 0
      type(c_ptr) :: orbit = c_null_ptr
   end type

   ! Addresses of arrays, of the host or of the device.
   type, bind(c) :: g6x_hermite
      integer(c_int) :: n
      real(c_double) :: eta, dtmin, dtmax
      type(c_ptr) :: mass, rounding, t, dt, x, v, a, j
      type(c_ptr) :: address, xi, vi, acc, jerk, pot
      integer(c_int) :: massless = 0
      type(c_ptr) :: field = c_null_ptr, nearest = c_null_ptr
      type(c_ptr) :: close = c_null_ptr, left = c_null_ptr
      type(c_ptr) :: field_acc = c_null_ptr, field_jerk = c_null_ptr
      type(c_ptr) :: work = c_null_ptr, power = c_null_ptr, rate = c_null_ptr
      type(c_ptr) :: words = c_null_ptr
      integer(c_int) :: share_first = 0, share_end = 0
      type(c_ptr) :: part = c_null_ptr, parts = c_null_ptr
      integer(c_int) :: part_rows = 0, share = 0, shares = 0
      integer(c_long_long) :: share_pairs = 0
      real(c_double) :: noise = 0, place = 0
   end type

   type, bind(c) :: g6x_evolution
      real(c_double) :: t_end = 0, eps2 = 0
      integer(c_int) :: passes = 1
      real(c_double) :: seconds = 0
      integer(c_long_long) :: most_blocks = 0
      type(c_ptr) :: stop = c_null_ptr
      integer(c_int) :: pause = 0
      real(c_double) :: closer = 0, farther = 0, centre(3) = 0
      integer(c_long_long) :: blocks = 0, steps = 0, clamped = 0
      real(c_double) :: clamped_time = 0, force_seconds = 0, time = 0, next = 0
      integer(c_int) :: ni = 0, pass = 0, row = 0, stage = 0
      integer(c_long_long) :: part_bytes = 0
   end type

   type, bind(c) :: g6x_perturber
      real(c_double) :: mass = 0, x(3) = 0, v(3) = 0, a(3) = 0, j(3) = 0
   end type

   type, bind(c) :: g6x_few_bodies
      integer(c_int) :: n = 0
      type(c_ptr) :: mass = c_null_ptr, x = c_null_ptr, v = c_null_ptr
      real(c_double) :: eps2 = 0, tolerance = 0, gamma = 0, slow_down = 0
      integer(c_int) :: perturbers = 0
      type(c_ptr) :: perturber = c_null_ptr
      integer(c_int) :: moved = 0
      real(c_double) :: step = 0
      integer(c_long_long) :: steps = 0, pulls = 0
      real(c_double) :: closest = 0, closest_time = 0
      integer(c_int) :: pair(2) = 0
   end type

   interface

      ! ---- opening and closing -------------------------------------------------------

      integer(c_int) function g6_open(clusterid) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid
      end function

      integer(c_int) function g6_npipes() bind(c)
         import :: c_int
      end function

      integer(c_int) function g6_set_tunit(newtunit) bind(c)
         import :: c_int
         integer(c_int), value :: newtunit
      end function

      integer(c_int) function g6_set_xunit(newxunit) bind(c)
         import :: c_int
         integer(c_int), value :: newxunit
      end function

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

      ! ---- j particles ---------------------------------------------------------------

      integer(c_int) function g6_set_j_particle(clusterid, address, index, tj, dtj, mass, &
                                                k18, j6, a2, v, x) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, address, index
         real(c_double), value :: tj, dtj, mass
         real(c_double), intent(in) :: k18(3), j6(3), a2(3), v(3), x(3)
      end function

      integer(c_int) function g6_set_j_particle_mxonly(clusterid, address, index, mass, x) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, address, index
         real(c_double), value :: mass
         real(c_double), intent(in) :: x(3)
      end function

      integer(c_int) function g6_set_ti(clusterid, ti) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid
         real(c_double), value :: ti
      end function

      integer(c_int) function g6_initialize_jp_buffer(clusterid, size) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, size
      end function

      integer(c_int) function g6_flush_jp_buffer_and_multisend(clusterid, nclusters) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, nclusters
      end function

      integer(c_int) function g6_setup_njdata(clusterid, nj) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, nj
      end function

      integer(c_int) function g6_get_predicted_j_particles(clusterid, nj, x, v) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj
         real(c_double), intent(out) :: x(3, *), v(3, *)
      end function

      integer(c_int) function get_j_part_data(addr, nj, x6) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: addr, nj
         real(c_double), intent(out) :: x6(6, *)
      end function

      ! ---- forces --------------------------------------------------------------------

      integer(c_int) function g6calc_firsthalf(clusterid, nj, ni, index, xi, vi, &
                                               aold, j6old, phiold, eps2, h2) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), aold(3, *), j6old(3, *), phiold(*)
         real(c_double), value :: eps2
         real(c_double), intent(in) :: h2(*)
      end function

      integer(c_int) function g6calc_lasthalf(clusterid, nj, ni, index, xi, vi, eps2, h2, &
                                              acc, jerk, pot) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj, ni
         integer(c_int), intent(in) :: index(*)
         real(c_double), intent(in) :: xi(3, *), vi(3, *), h2(*)
         real(c_double), value :: eps2
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
      end function

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

      integer(c_int) function g6_get_neighbour_list(clusterid, ipipe, maxlength, nblen, &
                                                    nbl) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, ipipe, maxlength
         integer(c_int), intent(out) :: nblen, nbl(*)
      end function

      integer(c_int) function g6_set_neighbour_list_sort_mode(mode) bind(c)
         import :: c_int
         integer(c_int), value :: mode
      end function

      ! ---- oddities of particular hosts and boards -----------------------------------

      integer(c_int) function g6_set_overflow_flag_test_mode(aflag, jflag, pflag) bind(c)
         import :: c_int
         integer(c_int), value :: aflag, jflag, pflag
      end function

      ! The one call whose arguments all go by reference.
      integer(c_int) function g6_set_j_particle_multisend_mxfast_( &
         clusterid, nclusters, address, index, mass, x) &
         bind(c, name='g6_set_j_particle_multisend_mxfast_')
         import :: c_int, c_double
         integer(c_int), intent(in) :: clusterid, nclusters, address, index
         real(c_double), intent(in) :: mass, x(3)
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

      integer(c_int) function g6_get_neighbour_list_all(ipipe, maxlength, nblen, nbl) bind(c)
         import :: c_int
         integer(c_int), value :: ipipe, maxlength
         integer(c_int), intent(out) :: nblen, nbl(*)
      end function

      integer(c_int) function g6_set_nip(clusterid, nip) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, nip
      end function

      integer(c_int) function g6_set_njp(clusterid, njp) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, njp
      end function

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

      integer(c_int) function g6x_last_error(clusterid, buffer, length) bind(c)
         import :: c_int, c_char
         integer(c_int), value :: clusterid, length
         character(kind=c_char), intent(out) :: buffer(*)
      end function

      integer(c_int) function g6x_version(buffer, length) bind(c)
         import :: c_int, c_char
         character(kind=c_char), intent(out) :: buffer(*)
         integer(c_int), value :: length
      end function

      integer(c_int) function g6x_open(clusterid, backend) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, backend
      end function

      integer(c_int) function g6x_prepare(clusterid, ni, nj) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, ni, nj
      end function

      integer(c_int) function g6x_choice(ni, nj, buffer, length) bind(c)
         import :: c_int, c_char
         integer(c_int), value :: ni, nj, length
         character(kind=c_char), intent(out) :: buffer(*)
      end function

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

      integer(c_int) function g6x_get_scale(clusterid, nj, exponent) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, nj
         integer(c_int), intent(out) :: exponent(3)
      end function

      integer(c_int) function g6x_get_origin(clusterid, nj, origin, drift) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, nj
         real(c_double), intent(out) :: origin(3), drift(3)
      end function

      ! May be c_null_ptr: integer address(n), index(n); real tj(n), dtj(n), k18(3, n), j6(3, n),
      ! a2(3, n), v(3, n).
      integer(c_int) function g6x_set_j_particles(clusterid, n, address, index, tj, dtj, mass, &
                                                  k18, j6, a2, v, x) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: clusterid, n
         type(c_ptr), value :: address, index, tj, dtj
         real(c_double), intent(in) :: mass(*)
         type(c_ptr), value :: k18, j6, a2, v
         real(c_double), intent(in) :: x(3, *)
      end function

      ! Arrays in the memory of the cluster's device: their addresses there (c_devloc of CUDA
      ! Fortran), x and its like (3, n). stream: a CUDA stream, c_null_ptr for the default one.
      integer(c_int) function g6x_set_j_particles_device(clusterid, n, address, index, tj, mass, &
                                                         k18, j6, a2, v, x, stream) bind(c)
         import :: c_int, c_ptr
         integer(c_int), value :: clusterid, n
         type(c_ptr), value :: address, index, tj, mass, k18, j6, a2, v, x, stream
      end function

      integer(c_int) function g6x_get_predicted_j_particles_device(clusterid, nj, x, v, stream) &
         bind(c)
         import :: c_int, c_ptr
         integer(c_int), value :: clusterid, nj
         type(c_ptr), value :: x, v, stream
      end function

      ! h2, nearest, distance (real(4)) may be c_null_ptr.
      integer(c_int) function g6x_forces_device(clusterid, nj, ni, index, x, v, eps2, h2, acc, &
                                                jerk, pot, nearest, distance, stream) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: clusterid, nj, ni
         type(c_ptr), value :: index, x, v
         real(c_double), value :: eps2
         type(c_ptr), value :: h2, acc, jerk, pot, nearest, distance, stream
      end function

      integer(c_int) function g6x_force_part_device(clusterid, nj, ni, index, x, v, eps2, &
                                                    nearest, share, shares, part, bytes, stream) &
                                                    bind(c)
         import :: c_int, c_long_long, c_double, c_ptr
         integer(c_int), value :: clusterid, nj, ni, nearest, share, shares
         type(c_ptr), value :: index, x, v, part, stream
         real(c_double), value :: eps2
         integer(c_long_long), intent(out) :: bytes
      end function

      integer(c_int) function g6x_merge_parts_device(clusterid, ni, parts, shares, acc, jerk, &
                                                     pot, nearest, distance, stream) bind(c)
         import :: c_int, c_ptr
         integer(c_int), value :: clusterid, ni, shares
         type(c_ptr), value :: parts, acc, jerk, pot, nearest, distance, stream
      end function

      integer(c_int) function g6x_hermite_predict(ni, address, time, t, x, v, a, j, xi, vi) &
         bind(c)
         import :: c_int, c_double
         integer(c_int), value :: ni
         integer(c_int), intent(in) :: address(*)
         real(c_double), value :: time
         real(c_double), intent(in) :: t(*), x(3, *), v(3, *), a(3, *), j(3, *)
         real(c_double), intent(out) :: xi(3, *), vi(3, *)
      end function

      ! May be c_null_ptr: real roundoff(ni), dt(n).
      integer(c_int) function g6x_hermite_correct(ni, address, time, eta, dtmin, dtmax, acc, &
                                                  jerk, roundoff, t, dt, x, v, a, j, xi, vi) &
                                                  bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: ni
         integer(c_int), intent(in) :: address(*)
         real(c_double), value :: time, eta, dtmin, dtmax
         real(c_double), intent(in) :: acc(3, *), jerk(3, *)
         type(c_ptr), value :: roundoff
         real(c_double), intent(inout) :: t(*)
         type(c_ptr), value :: dt
         real(c_double), intent(inout) :: x(3, *), v(3, *), a(3, *), j(3, *)
         real(c_double), intent(out) :: xi(3, *), vi(3, *)
      end function

      ! May be c_null_ptr: real acc(3, n), jerk(3, n), pot(n).
      integer(c_int) function g6x_field_add(f, n, time, x, v, acc, jerk, pot) bind(c)
         import :: c_int, c_double, c_ptr, g6x_field
         type(g6x_field), intent(in) :: f
         integer(c_int), value :: n
         real(c_double), value :: time
         real(c_double), intent(in) :: x(3, *), v(3, *)
         type(c_ptr), value :: acc, jerk, pot
      end function

      integer(c_int) function g6x_field_origin(f, time, origin) bind(c)
         import :: c_int, c_double, g6x_field
         type(g6x_field), intent(in) :: f
         real(c_double), value :: time
         real(c_double), intent(out) :: origin(3, 4)
      end function

      integer(c_int) function g6x_hermite_add_field(h, ni, time) bind(c)
         import :: c_int, c_double, g6x_hermite
         type(g6x_hermite), intent(in) :: h
         integer(c_int), value :: ni
         real(c_double), value :: time
      end function

      ! May be c_null_ptr: real work(ni).
      integer(c_int) function g6x_hermite_work(h, ni, time, work) bind(c)
         import :: c_int, c_double, c_ptr, g6x_hermite
         type(g6x_hermite), intent(in) :: h
         integer(c_int), value :: ni
         real(c_double), value :: time
         type(c_ptr), value :: work
      end function

      integer(c_int) function g6x_hermite_evolve(clusterid, h, e) bind(c)
         import :: c_int, g6x_hermite, g6x_evolution
         integer(c_int), value :: clusterid
         type(g6x_hermite), intent(in) :: h
         type(g6x_evolution), intent(inout) :: e
      end function

      integer(c_int) function g6x_few_body_evolve(b, dt) bind(c)
         import :: c_int, c_double, g6x_few_bodies
         type(g6x_few_bodies), intent(inout) :: b
         real(c_double), value :: dt
      end function

      integer(c_int) function g6x_hermite_evolve_device(clusterid, h, e, stream) bind(c)
         import :: c_int, c_ptr, g6x_hermite, g6x_evolution
         integer(c_int), value :: clusterid
         type(g6x_hermite), intent(in) :: h
         type(g6x_evolution), intent(inout) :: e
         type(c_ptr), value :: stream
      end function

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

      integer(c_int) function g6x_hermite_correct_device(clusterid, h, ni, time, what, stream) &
         bind(c)
         import :: c_int, c_double, c_ptr, g6x_hermite
         integer(c_int), value :: clusterid, ni, what
         type(g6x_hermite), intent(in) :: h
         real(c_double), value :: time
         type(c_ptr), value :: stream
      end function

      ! May be c_null_ptr: real v(3, n).
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

      integer(c_int) function g6x_tree_particles(tree, x, mass) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: tree
         real(c_double), intent(out) :: x(3, *), mass(*)
      end function

      integer(c_int) function g6x_tree_set_int(tree, key, value) bind(c)
         import :: c_int
         integer(c_int), value :: tree, key, value
      end function

      ! May be c_null_ptr: real x(3, ni), v(3, ni), last_acc(ni), jerk(3, ni); integer self(ni).
      integer(c_int) function g6x_tree_forces(tree, ni, x, v, self, eps2, method, order, theta, &
                                              last_acc, bound, acc, jerk, pot) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: tree, ni, method, order
         type(c_ptr), value :: x, v, self, last_acc, jerk
         real(c_double), value :: eps2, theta, bound
         real(c_double), intent(out) :: acc(3, *), pot(*)
      end function

      ! May be c_null_ptr: real v(3, n).
      integer(c_int) function g6x_tree_open_in(whole, n, x, v, mass) bind(c)
         import :: c_int, c_double, c_ptr, G6X_TREE_WHOLE
         real(c_double), intent(in) :: whole(G6X_TREE_WHOLE)
         integer(c_int), value :: n
         real(c_double), intent(in) :: x(3, *)
         type(c_ptr), value :: v
         real(c_double), intent(in) :: mass(*)
      end function

      integer(c_int) function g6x_tree_keys(whole, n, x, key) bind(c)
         import :: c_int, c_double, c_long_long, G6X_TREE_WHOLE
         real(c_double), intent(in) :: whole(G6X_TREE_WHOLE)
         integer(c_int), value :: n
         real(c_double), intent(in) :: x(3, *)
         integer(c_long_long), intent(out) :: key(*)
      end function

      integer(c_int) function g6x_tree_by_key(tree, order) bind(c)
         import :: c_int
         integer(c_int), value :: tree
         integer(c_int), intent(out) :: order(*)
      end function

      ! May be c_null_ptr: to, of `capacity` bytes.
      integer(c_int) function g6x_tree_part(tree, eps2, method, order, theta, bound, regions, &
                                            region, to, capacity, bytes) bind(c)
         import :: c_int, c_long_long, c_double, c_ptr, G6X_TREE_REGION
         integer(c_int), value :: tree, method, order, regions
         real(c_double), value :: eps2, theta, bound
         real(c_double), intent(in) :: region(G6X_TREE_REGION, *)
         type(c_ptr), value :: to
         integer(c_long_long), value :: capacity
         integer(c_long_long), intent(out) :: bytes
      end function

      ! part: addresses of `parts` parts. May be c_null_ptr: as for g6x_tree_forces, and
      ! integer(c_long_long) done(3).
      integer(c_int) function g6x_tree_forces_with(tree, parts, part, ni, x, v, self, eps2, &
                                                   method, order, theta, last_acc, bound, acc, &
                                                   jerk, pot, done) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: tree, parts, ni, method, order
         type(c_ptr), intent(in) :: part(*)
         type(c_ptr), value :: x, v, self, last_acc, jerk, done
         real(c_double), value :: eps2, theta, bound
         real(c_double), intent(out) :: acc(3, *), pot(*)
      end function

      ! May be c_null_ptr: real last_acc(number of particles).
      integer(c_int) function g6x_tree_bound(tree, eps2, method, order, accuracy, last_acc, &
                                             bound) bind(c)
         import :: c_int, c_double, c_ptr
         integer(c_int), value :: tree, method, order
         type(c_ptr), value :: last_acc
         real(c_double), value :: eps2, accuracy
         real(c_double), intent(out) :: bound
      end function

      ! May be c_null_ptr: x, self as above; integer(c_long_long) start(ni + 1), which counts
      ! from 0; integer found(*).
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

      ! i_start, j_start and the integers of j_list, which may be c_null_ptr, count from 0.
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

      ! Arrays of addresses (c_loc) of each walk's arrays; nc, xc, mc may be c_null_ptr, else they
      ! are such arrays, and integer nc(nwalks).
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

      ! List i is list(start(i) + 1:start(i + 1)).
      integer(c_int) function g6x_get_neighbour_lists(clusterid, ni, capacity, start, list) bind(c)
         import :: c_int, c_long_long
         integer(c_int), value :: clusterid, ni
         integer(c_long_long), value :: capacity
         integer(c_long_long), intent(out) :: start(*)
         integer(c_int), intent(out) :: list(*)
      end function

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

      integer(c_int) function g6x_get_tops(ni, words, top) bind(c)
         import :: c_int, c_long_long, G6X_PARTIAL_WORDS, G6X_PARTIAL_TOPS
         integer(c_int), value :: ni
         integer(c_long_long), intent(in) :: words(G6X_PARTIAL_WORDS, *)
         integer(c_int), intent(out) :: top(G6X_PARTIAL_TOPS, *)
      end function

      integer(c_int) function g6x_raise_partial(ni, words, top) bind(c)
         import :: c_int, c_long_long, G6X_PARTIAL_WORDS, G6X_PARTIAL_TOPS
         integer(c_int), value :: ni
         integer(c_long_long), intent(inout) :: words(G6X_PARTIAL_WORDS, *)
         integer(c_int), intent(in) :: top(G6X_PARTIAL_TOPS, *)
      end function

      integer(c_int) function g6x_get_sample(clusterid, nj, all, first, words) bind(c)
         import :: c_int, c_long_long, G6X_SAMPLE_WORDS
         integer(c_int), value :: clusterid, nj
         integer(c_long_long), value :: all, first
         integer(c_long_long), intent(out) :: words(G6X_SAMPLE_WORDS)
      end function

      integer(c_int) function g6x_set_sample(clusterid, words) bind(c)
         import :: c_int, c_long_long, G6X_SAMPLE_WORDS
         integer(c_int), value :: clusterid
         integer(c_long_long), intent(in) :: words(G6X_SAMPLE_WORDS)
      end function

      integer(c_int) function g6x_get_counts(clusterid, nj, words) bind(c)
         import :: c_int, c_long_long, G6X_COUNT_WORDS
         integer(c_int), value :: clusterid, nj
         integer(c_long_long), intent(out) :: words(G6X_COUNT_WORDS)
      end function

      integer(c_int) function g6x_set_counts(clusterid, words) bind(c)
         import :: c_int, c_long_long, G6X_COUNT_WORDS
         integer(c_int), value :: clusterid
         integer(c_long_long), intent(in) :: words(G6X_COUNT_WORDS)
      end function

      integer(c_int) function g6x_share_particles(clusterid, n, first, end, tj, mass, j6, a2, &
                                                  v, x) bind(c)
         import :: c_int, c_double
         integer(c_int), value :: clusterid, n, first, end
         real(c_double), intent(in) :: tj(*), mass(*), j6(3, *), a2(3, *), v(3, *), x(3, *)
      end function

      integer(c_int) function g6x_get_fine_rows(clusterid, nj, ni, index, fine) bind(c)
         import :: c_int, c_signed_char
         integer(c_int), value :: clusterid, nj, ni
         integer(c_int), intent(in) :: index(*)
         integer(c_signed_char), intent(out) :: fine(*)
      end function

      integer(c_int) function g6x_set_fine_rows(clusterid, ni, fine) bind(c)
         import :: c_int, c_signed_char
         integer(c_int), value :: clusterid, ni
         integer(c_signed_char), intent(in) :: fine(*)
      end function

      integer(c_int) function g6x_counts(clusterid, counts) bind(c)
         import :: c_int, c_long_long
         integer(c_int), value :: clusterid
         integer(c_long_long), intent(out) :: counts(3)
      end function

      integer(c_int) function g6x_from_partial(ni, words, acc, jerk, pot) bind(c)
         import :: c_int, c_double, c_long_long, G6X_PARTIAL_WORDS
         integer(c_int), value :: ni
         integer(c_long_long), intent(in) :: words(G6X_PARTIAL_WORDS, *)
         real(c_double), intent(out) :: acc(3, *), jerk(3, *), pot(*)
      end function

   end interface

   ! ---- calls with the arguments of another -------------------------------------------

   procedure(g6_open), bind(c) :: g6_close, g6_reset, g6_reset_fofpga, g6_reinitialize, &
      g6_flush_jp_buffer, g6_getnjmax, g6_read_neighbour_list, g6_read_neighbour_list_old, &
      g6_print_chip_status, g6_changed_index, g6x_clear_error, g6x_end_share
   procedure(g6_npipes), bind(c) :: get_device_count, force_j_particle_send, &
      g6_get_neighbour_list_sort_mode, g6_open_all, g6_close_all, g6_reset_all, &
      g6_reset_fofpga_all, g6_flush_jp_buffer_all, g6_read_neighbour_list_all
   procedure(g6calc_lasthalf), bind(c) :: g6calc_lasthalfn
   procedure(g6calc_lasthalf2), bind(c) :: g6calc_lasthalf2n
   procedure(g6calc_lasthalf2p), bind(c) :: g6calc_lasthalf2np
   procedure(g6x_last_error), bind(c) :: g6x_last_warning, g6x_backend

end module g6lib
