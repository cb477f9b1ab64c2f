! block_step.f90 - the block calls of the module g6lib: a body in a constant field, whose path
! the scheme follows exactly, and its next step.
program block_step
   use, intrinsic :: iso_c_binding
   use g6lib
   implicit none
   integer, parameter :: n = 3
   integer(c_int) :: address(1) = [1]
   real(c_double), target :: dt(n) = 0.25_c_double
   real(c_double) :: t(n), x(3, n), v(3, n), a(3, n), j(3, n)
   real(c_double) :: xi(3, 1), vi(3, 1), acc(3, 1), jerk(3, 1)
   real(c_double), parameter :: time = 0.5_c_double, h = 0.25_c_double, eta = 0.02_c_double, &
                                small = 1e-9_c_double, large = 1.0_c_double
   integer(c_int) :: code

   t = 0.25_c_double
   x = 1; v = 2; a = 4; j = 0
   acc = 4; jerk = 0
   call expect('predict', g6x_hermite_predict(1, address, time, t, x, v, a, j, xi, vi) == 0)
   call expect('x', all(xi == 1 + 2*h + 2*h**2))
   call expect('v', all(vi == 2 + 4*h))
   code = g6x_hermite_correct(1, address, time, eta, small, large, acc, jerk, &
                              c_null_ptr, t, c_null_ptr, x, v, a, j, xi, vi)
   call expect('correct', code == 0 .and. all(x == 1) .and. all(t == 0.25_c_double))
   code = g6x_hermite_correct(1, address, time, eta, small, large, acc, jerk, &
                              c_null_ptr, t, c_loc(dt), x, v, a, j, xi, vi)
   call expect('move', code == 0 .and. all(x(:, 2) == xi(:, 1)) .and. all(v(:, 2) == vi(:, 1)))
   call expect('the others', all(x(:, [1, 3]) == 1) .and. all(t == [0.25_c_double, time, &
                                                                  0.25_c_double]))
   call expect('steps', all(dt == [0.25_c_double, 0.5_c_double, 0.25_c_double]))
   print '(a)', 'block steps: all right'

contains

   subroutine expect(what, right)
      character(len=*), intent(in) :: what
      logical, intent(in) :: right
      if (.not. right) then
         print '(2a)', 'wrong: ', what
         stop 1
      end if
   end subroutine
end program
