! blocks_and_walks.f90 - the block calls of the module g6lib: a body in a constant field, whose path
! the scheme follows exactly, and its next step; and many walks, by offsets and by addresses.
program blocks_and_walks
   use, intrinsic :: iso_c_binding
   use g6lib
   implicit none
   call blocks()
   call walks()
   print '(a)', 'blocks and walks: all right'

contains

   subroutine blocks()
      integer(c_int) :: address(1) = [1], code
      real(c_double), target :: dt(3) = 0.25d0
      real(c_double) :: t(3), x(3, 3), v(3, 3), a(3, 3), j(3, 3)
      real(c_double) :: xi(3, 1), vi(3, 1), acc(3, 1), jerk(3, 1)
      real(c_double), parameter :: time = 0.5d0, h = 0.25d0, eta = 0.02d0, small = 1d-9, large = 1d0

      t = 0.25d0
      x = 1; v = 2; a = 4; j = 0
      acc = 4; jerk = 0
      call expect('predict', g6x_hermite_predict(1, address, time, t, x, v, a, j, xi, vi) == 0)
      call expect('x', all(xi == 1 + 2*h + 2*h**2) .and. all(vi == 2 + 4*h))
      code = g6x_hermite_correct(1, address, time, eta, small, large, acc, jerk, &
                                 c_null_ptr, t, c_null_ptr, x, v, a, j, xi, vi)
      call expect('correct', code == 0 .and. all(x == 1) .and. all(t == 0.25d0))
      code = g6x_hermite_correct(1, address, time, eta, small, large, acc, jerk, &
                                 c_null_ptr, t, c_loc(dt), x, v, a, j, xi, vi)
      call expect('move', code == 0 .and. all(x(:, 2) == xi(:, 1)) .and. all(v(:, 2) == vi(:, 1)))
      call expect('others', all(x(:, [1, 3]) == 1) .and. all(t == [0.25d0, time, 0.25d0]))
      call expect('steps', all(dt == [0.25d0, 0.5d0, 0.25d0]))
   end subroutine

   subroutine walks()
      integer(c_long_long) :: i_start(3) = [0, 2, 3], j_start(3) = [0, 2, 4]
      real(c_double), target :: xi(3, 3), xj(3, 4), mj(4), acc(3, 3), pot(3), again(3, 3), phi(3)
      integer(c_int), target :: list(4) = [0, 1, 3, 2]
      integer(c_int) :: ni(2) = [2, 1], nj(2) = [2, 2]
      type(c_ptr) :: x(2), y(2), m(2), a(2), p(2)

      xi = 0; xj = 0; mj = [1, 1, 1, 2]
      xi(1, :) = [0, 1, 9]
      xj(1, :) = [0, 1, 9, 1]
      call expect('open', g6_open(0) == 0)
      call expect('walks', g6x_walks(0, 2, i_start, xi, j_start, c_loc(list), 4, xj, mj, 0d0, &
                                     acc, pot) == 0)
      call expect('acc', all(abs(acc(1, :) - [1d0, -1d0, -2/64d0]) < 1e-6))
      call expect('pot', all(abs(pot - [-1d0, -1d0, -2/8d0]) < 1e-6))
      x = [c_loc(xi(1, 1)), c_loc(xi(1, 3))]
      y = [c_loc(xj(1, 1)), c_loc(xj(1, 3))]
      m = [c_loc(mj(1)), c_loc(mj(3))]
      a = [c_loc(again(1, 1)), c_loc(again(1, 3))]
      p = [c_loc(phi(1)), c_loc(phi(3))]
      call expect('dispatch', g6x_walks_dispatch(0, 7, 2, ni, x, nj, y, m, c_null_ptr, &
                                                 c_null_ptr, c_null_ptr, 0d0) == 0)
      call expect('retrieve', g6x_walks_retrieve(0, 7, 2, ni, a, p) == 0)
      call expect('the same', all(again == acc) .and. all(phi == pot))
      call expect('close', g6_close(0) == 0)
   end subroutine

   subroutine expect(what, right)
      character(len=*), intent(in) :: what
      logical, intent(in) :: right
      if (right) return
      print '(2a)', 'wrong: ', what
      stop 1
   end subroutine

end program
