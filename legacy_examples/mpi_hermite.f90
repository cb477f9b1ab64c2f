! mpi_hermite.f90 - an N-body integrator of the GRAPE age, spread over MPI ranks.
!
! Fourth-order Hermite scheme with power-of-two block time steps (Makino & Aarseth 1992,
! PASJ 44, 141). A rank has a share of the bodies: it predicts and corrects them, and its board
! (cluster id: the rank) holds them as j particles. Each step the ranks tell each other which
! bodies are due and where; a board gives the force of its share on all of these, the forces
! are added over the ranks, and each rank corrects its own.
!
!   mpirun -n 3 mpi_hermite [FILE] [-e eps] [-a eta] [-t tend] [-p | -d] [-f] [-w]
!
! FILE: one line a body, m x y z vx vy vz, G = 1; # starts a comment. Defaults:
! data/plummer1024.dat, eps = 4/N (also if negative), eta = 0.02, tend = 1.
!   -p  adds partial sums, integers (default): the same bits on any number of ranks
!   -d  adds doubles, as phiGRAPE does, for any GRAPE library: the last bits depend on it
!   -f  prints the first forces on all bodies, not only on five
!   -w  prints the seconds that the steps have taken by the clock
! Energies are printed every quarter of a time unit, and at the end a number made of all
! bits of the state. g6lib.f90 is compiled in front of this file, and g6x_mpi.h, in C, beside it.
module cluster
   use, intrinsic :: iso_c_binding, only: c_double, c_int, c_long_long
   use, intrinsic :: iso_fortran_env, only: error_unit, int64
   use mpi
   use g6lib
   implicit none
   integer, parameter :: dp = c_double
   integer, parameter :: block_size = 1024         ! j addresses that are summed as one
   real(dp), parameter :: eta_start = 0.0025_dp    ! first step = eta_start |a| / |da/dt|
   integer, parameter :: n_host = 4096             ! most bodies for sums over all pairs on the host
   real(dp), parameter :: dt_min = 2.0_dp**(-40), dt_out = 0.25_dp
   integer :: n, rank, ranks, npipes, n_local      ! n_local: bodies here, j addresses in use
   logical :: partial = .true., print_all = .false., wall = .false.
   real(dp) :: now = 0, eps = -1, eps2, eta = 0.02_dp, tend = 1, dt_max = 0.125_dp
   real(dp), allocatable, target :: x(:, :), v(:, :)
   real(dp), allocatable :: m(:), t(:), dt(:), pot(:), a(:, :), j(:, :) ! j: da/dt
   real(dp), allocatable :: xp(:, :), vp(:, :), a1(:, :), j1(:, :), pot1(:), h2(:) ! of the block
   integer, allocatable :: mine(:)                 ! bodies here, by their j address + 1
   real(dp), allocatable :: next(:)                ! and when their next step ends
   integer, allocatable :: block(:)                ! bodies of this step, rank by rank,
   integer :: first, count                         ! of which so many, behind first, are due here
   integer(c_long_long), allocatable :: words(:, :)
   integer(int64) :: steps = 0, blocks = 0
   ! g6x_mpi.h, compiled in C with G6X_MPI_FORTRAN
   interface
      integer(c_int) function g6x_mpi_share_f(clusterid, nj, comm) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, nj, comm
      end function
      integer(c_int) function g6x_mpi_rows_f(clusterid, nj, ni, index, comm) bind(c)
         import :: c_int
         integer(c_int), value :: clusterid, nj, ni, comm
         integer(c_int), intent(in) :: index(*)
      end function
      integer(c_int) function g6x_mpi_sum_f(ni, words, comm) bind(c)
         import :: c_int, c_long_long, G6X_PARTIAL_WORDS
         integer(c_int), value :: ni, comm
         integer(c_long_long), intent(inout) :: words(G6X_PARTIAL_WORDS, *)
      end function
   end interface
contains
   ! Ends all ranks.
   subroutine fail(text)
      character(*), intent(in) :: text
      integer :: code
      write (error_unit, '(2a)') ' mpi_hermite: ', trim(text)
      call MPI_Abort(MPI_COMM_WORLD, 1, code)
   end subroutine
   subroutine check(code) ! which the board answers: 0, or one of g6lib, which has said why
      integer(c_int), intent(in) :: code
      if (code /= 0) call fail('the GRAPE fails')
   end subroutine

   ! ---- the board --------------------------------------------------------------------

   ! Which bodies this rank has as j particles, and at which of its addresses.
   !
   ! Partial sums have equal bits only if no block of 1024 addresses is torn: each rank has
   ! some blocks, one behind the other, with few bodies perhaps none. For doubles single bodies
   ! are dealt out.
   subroutine share_out
      integer :: i, blocks_of_all, before
      blocks_of_all = (n + block_size - 1)/block_size
      before = rank*blocks_of_all/ranks*block_size
      n_local = (n - rank + ranks - 1)/ranks
      if (partial) n_local = min((rank + 1)*blocks_of_all/ranks*block_size, n) - before
      mine = [(merge(before + i, rank + 1 + (i - 1)*ranks, partial), i=1, n_local)]
      allocate (next(n_local), source=0.0_dp)
   end subroutine

   subroutine send(k) ! the k-th body here
      integer, intent(in) :: k
      real(dp), parameter :: k18(3) = 0
      integer :: i
      i = mine(k)
      next(k) = t(i) + dt(i)
      call check(g6_set_j_particle(rank, k - 1, i, t(i), dt(i), m(i), k18, j(:, i)/6, &
                                   a(:, i)/2, v(:, i), x(:, i)))
   end subroutine

   ! The block of this step, rank by rank: each predicts its bodies that are due, by numbers k.
   subroutine gather_block(due)
      integer, intent(in) :: due(:)
      integer :: i, q, code, counts(ranks), starts(ranks)
      real(dp) :: s, own(7, size(due)), all(7, n)
      count = size(due)
      do q = 1, count
         i = mine(due(q))
         s = now - t(i)
         own(:3, q) = x(:, i) + s*(v(:, i) + s*(a(:, i)/2 + s*j(:, i)/6))
         own(4:, q) = [v(:, i) + s*(a(:, i) + s*j(:, i)/2), real(i, dp)]
      end do
      call MPI_Allgather(count, 1, MPI_INTEGER, counts, 1, MPI_INTEGER, MPI_COMM_WORLD, code)
      starts = [(sum(counts(:q)), q=0, ranks - 1)]
      call MPI_Allgatherv(own, 7*count, MPI_DOUBLE_PRECISION, all, 7*counts, 7*starts, &
                          MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, code)
      first = starts(rank + 1)
      block = nint(all(7, :sum(counts)))
      xp(:, :size(block)) = all(:3, :size(block))
      vp(:, :size(block)) = all(4:6, :size(block))
   end subroutine

   ! Forces at the time now on the block: those of this board, in as many calls as its pipes
   ! need, then added over the ranks. Partial sums become forces only for the bodies due here.
   subroutine get_forces
      integer :: q, nb, ni
      nb = size(block)
      call check(g6_set_ti(rank, now))
      do q = 1, nb, npipes
         ni = min(npipes, nb - q + 1)
         if (partial) call check(g6x_mpi_rows_f(rank, n_local, ni, block(q:), MPI_COMM_WORLD))
         call check(g6calc_firsthalf(rank, n_local, ni, block(q:), xp(:, q:), vp(:, q:), &
                                     a1(:, q:), j1(:, q:), pot1(q:), eps2, h2))
         if (partial) then
            call check(g6x_get_partial(rank, ni, words(:, q:)))
         else
            call check(g6calc_lasthalf(rank, n_local, ni, block(q:), xp(:, q:), vp(:, q:), eps2, &
                                       h2, a1(:, q:), j1(:, q:), pot1(q:)))
         end if
      end do
      if (partial) then
         call check(g6x_mpi_sum_f(nb, words, MPI_COMM_WORLD))
         call check(g6x_from_partial(count, words(:, first + 1:), a1(:, first + 1:), &
                                     j1(:, first + 1:), pot1(first + 1:)))
      else
         call add_doubles(a1, 3*nb)
         call add_doubles(j1, 3*nb)
         call add_doubles(pot1, nb)
      end if
   end subroutine

   subroutine add_doubles(array, length)
      integer, intent(in) :: length
      real(dp), intent(inout) :: array(length)
      integer :: code
      call MPI_Allreduce(MPI_IN_PLACE, array, length, MPI_DOUBLE_PRECISION, MPI_SUM, &
                         MPI_COMM_WORLD, code)
   end subroutine

   ! ---- steps ------------------------------------------------------------------------

   ! Hermite corrector for body i, the q-th of the block; its next step by Aarseth's criterion.
   subroutine correct(i, q)
      integer, intent(in) :: i, q
      real(dp) :: h, want, below, s(3), c(3) ! second and third derivative of the acceleration
      h = now - t(i)
      s = (6*(a1(:, q) - a(:, i)) - h*(4*j(:, i) + 2*j1(:, q)))/h**2
      c = (12*(a(:, i) - a1(:, q)) + 6*h*(j(:, i) + j1(:, q)))/h**3
      x(:, i) = xp(:, q) + h**4*(s/24 + h*c/120)
      v(:, i) = vp(:, q) + h**3*(s/6 + h*c/24)
      s = s + h*c
      a(:, i) = a1(:, q)
      j(:, i) = j1(:, q)
      pot(i) = pot1(q)
      t(i) = now
      below = norm2(j(:, i))*norm2(c) + sum(s**2)
      want = dt_max
      if (below > 0) want = sqrt(eta*(norm2(a(:, i))*norm2(s) + sum(j(:, i)**2))/below)
      if (want < h) then
         call shorten(i, want)
      else if (dt(i) < dt_max .and. want >= 2*h .and. mod(now, 2*h) == 0) then
         dt(i) = 2*dt(i) ! where the grid of that step allows it
      end if
   end subroutine

   subroutine shorten(i, want)
      integer, intent(in) :: i
      real(dp), intent(in) :: want
      do while (dt(i) > want .and. dt(i) > dt_min)
         dt(i) = dt(i)/2
      end do
   end subroutine

   subroutine start
      integer :: i
      npipes = g6_npipes()
      call check(g6_open(rank))
      call share_out
      do i = 1, n_local; call send(i); end do
      call get_forces_on_all
      a(:, block) = a1
      j(:, block) = j1
      do i = 1, n
         if (norm2(j(:, i)) > 0) call shorten(i, eta_start*norm2(a(:, i))/norm2(j(:, i)))
         if (rank == 0 .and. (i <= 5 .or. print_all)) &
            print '(" force", i7, 4es25.16e3)', i, a(:, i), pot(i)
      end do
      do i = 1, n_local; call send(i); end do
   end subroutine

   ! All bodies are due, and every rank gets all forces. Partial sums can be merged only if all
   ! boards use one scale, which must not depend on the number of ranks: that of all bodies. It
   ! is found anew here, since a cluster may grow or shrink by orders of magnitude.
   subroutine get_forces_on_all
      integer :: k
      if (partial) call check(g6x_mpi_share_f(rank, n_local, MPI_COMM_WORLD))
      call gather_block([(k, k=1, n_local)])
      first = 0
      count = n
      call get_forces
      pot(block) = pot1
   end subroutine

   subroutine block_step
      integer :: k, code
      integer, allocatable :: due(:)
      now = minval(next)
      call MPI_Allreduce(MPI_IN_PLACE, now, 1, MPI_DOUBLE_PRECISION, MPI_MIN, MPI_COMM_WORLD, code)
      due = pack([(k, k=1, n_local)], next == now)
      call gather_block(due)
      call get_forces
      do k = 1, count
         call correct(mine(due(k)), first + k)
         call send(due(k))
      end do
      steps = steps + size(block)
      blocks = blocks + 1
   end subroutine

   ! ---- input and output -------------------------------------------------------------

   ! Energies by the host, up to n_host bodies, the ranks sharing the pairs, and by the potential.
   subroutine output(e_host, e_pot)
      real(dp), intent(out) :: e_host, e_pot
      real(dp) :: kinetic, row(n)
      integer :: i, k
      call get_forces_on_all
      x(:, block) = xp
      v(:, block) = vp
      kinetic = 0.5_dp*sum(m*sum(v**2, dim=1))
      e_pot = kinetic + 0.5_dp*sum(m*pot)
      row = 0
      do i = 1 + rank, merge(n, 0, n <= n_host), ranks
         do k = 1, i - 1
            row(i) = row(i) - m(i)*m(k)/sqrt(sum((x(:, i) - x(:, k))**2) + eps2)
         end do
      end do
      ! A row is 0 on all ranks but one: the sum is exact in any order.
      call add_doubles(row, n)
      e_host = merge(kinetic + sum(row), e_pot, n <= n_host)
      if (rank /= 0) return
      write (*, '(" time", f11.5)', advance='no') now
      if (n <= n_host) write (*, '(a, es19.10)', advance='no') '   energy (host)', e_host
      print '(a, es19.10)', '   energy (pot)', e_pot
   end subroutine

   ! A number made of all bits of the state: a sum over the bodies, in any order.
   integer(int64) function state_bits() result(hash)
      integer(int64), parameter :: prime(2) = [2147483647_int64, 2147483629_int64]
      integer(int64) :: h(2), of_body(2), word
      integer :: i, k, q, part, code
      real(dp) :: state(15)
      h = 0
      do q = 1, n_local
         i = mine(q)
         of_body = i
         state = [t(i), dt(i), pot(i), x(:, i), v(:, i), a(:, i), j(:, i)]
         do k = 1, size(state)
            do part = 0, 48, 16
               word = ibits(transfer(state(k), word), part, 16)
               of_body = mod(of_body*[65599, 92821] + word, prime)
            end do
         end do
         h = h + of_body
      end do
      call MPI_Allreduce(MPI_IN_PLACE, h, 2, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD, code)
      h = mod(h, prime)
      hash = h(1)*2_int64**31 + h(2)
   end function

   ! Bodies from a file, read by all ranks.
   subroutine read_snapshot(name)
      character(*), intent(in) :: name
      character(len=1024) :: line
      real(dp), allocatable :: b(:, :)
      integer :: unit, code
      open (newunit=unit, file=name, status='old', action='read', iostat=code)
      if (code /= 0) call fail('cannot open '//name)
      allocate (b(7, 1024))
      n = 0
      do
         read (unit, '(a)', iostat=code) line
         if (code /= 0) exit
         line = line(:index(line//'#', '#') - 1)
         if (line == ' ') cycle
         if (n == size(b, 2)) b = reshape(b, [7, 2*n], pad=b(:, 1))
         n = n + 1
         b(:, n) = huge(b)
         read (line, *, iostat=code) b(:, n)
         if (code /= 0 .or. .not. all(abs(b(:, n)) < 1e30_dp) .or. b(1, n) < 0) &
            call fail('not m x y z vx vy vz: a line of '//name)
      end do
      if (n == 0) call fail('no bodies in '//name)
      m = b(1, :n)
      x = b(2:4, :n)
      v = b(5:, :n)
   end subroutine

   subroutine read_options
      character(len=256) :: word, name
      integer :: k
      name = 'data/plummer1024.dat'
      k = 1
      do while (k <= command_argument_count())
         call get_command_argument(k, word)
         select case (word)
         case ('-p', '-d'); partial = word == '-p'
         case ('-f'); print_all = .true.
         case ('-w'); wall = .true.
         case ('-e'); eps = value_of(k)
         case ('-a'); eta = value_of(k)
         case ('-t'); tend = value_of(k)
         case default
            if (word(1:1) == '-') &
               call fail('[FILE] [-e eps] [-a eta] [-t tend] [-p | -d] [-f] [-w]')
            name = word
         end select
         k = k + 1
      end do
      if (.not. (eta > 0 .and. tend > 1e-9_dp)) call fail('eta and tend must be above zero')
      call read_snapshot(trim(name))
   end subroutine

   real(dp) function value_of(k) result(number)
      integer, intent(inout) :: k ! steps on to the argument that is the value
      character(len=256) :: word
      integer :: code
      k = k + 1
      call get_command_argument(k, word)
      read (word, *, iostat=code) number
      if (code /= 0) call fail('not a number: '//word)
   end function

end module cluster

program mpi_hermite
   use cluster
   implicit none
   real(dp) :: e0, e1, p0, p1, outputs, seconds ! of the steps
   integer(int64) :: bits
   integer :: code

   call MPI_Init(code)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
   call read_options
   if (eps < 0) eps = 4.0_dp/n
   eps2 = eps**2
   do while (mod(tend, dt_max) /= 0 .and. dt_max > tend/16)
      dt_max = dt_max/2 ! the largest step divides tend, so that all bodies meet there ...
   end do
   tend = anint(tend/dt_max)*dt_max ! ... if need be, tend moves
   allocate (dt(n), source=dt_max)
   allocate (t(n), pot(n), a(3, n), j(3, n), h2(n), source=0.0_dp)
   allocate (xp, vp, a1, j1, source=a)
   allocate (pot1, source=pot)
   allocate (words(G6X_PARTIAL_WORDS, merge(n, 1, partial)))
   if (rank == 0) print '(" mpi_hermite   N =", i6, 2(a, es12.3), a, f10.5)', n, '   eps =', eps, &
      '   eta =', eta, '   t_end =', tend
   call start
   call output(e0, p0)
   outputs = MPI_Wtime()
   seconds = 0
   do while (now < tend)
      call block_step
      if (.not. (mod(now, dt_out) == 0 .or. now >= tend)) cycle
      seconds = seconds + MPI_Wtime() - outputs
      call output(e1, p1)
      outputs = MPI_Wtime()
   end do
   bits = state_bits()
   if (rank == 0) then
      print '(" steps", i10, "   blocks", i9)', steps, blocks
      print '(" bits of the state ", z16.16)', bits
      print '(a, es12.3)', ' relative energy error by pot', abs((p1 - p0)/p0), &
         ' relative energy error', abs((e1 - e0)/e0)
   end if
   if (rank == 0 .and. wall) print '(a, f11.4)', ' seconds of the steps', seconds
   if (.not. (abs(e1) < 1e30_dp .and. abs(p1) < 1e30_dp)) call fail('energy is lost')
   call check(g6_close(rank))
   call MPI_Finalize(code)
end program mpi_hermite
