! two_body.f90 - the module g6lib at work: forces of two bodies against Newton's, moved
! by the predictor, a neighbour list, bulk writing, partial sums, and texts.
program two_body
   use, intrinsic :: iso_c_binding
   use g6lib
   implicit none
   integer, parameter :: n = 2
   integer(c_int), target :: index(n) = [7, 9]
   real(c_double), target :: v(3, n)
   real(c_double) :: m(n), x(3, n), acc(3, n), jerk(3, n), pot(n), h2(n), zero(3) = 0.0_c_double
   real(c_double) :: acc2(3, n), jerk2(3, n), pot2(n)
   integer(c_int) :: nn(n), list(4), length, key
   integer(c_long_long) :: words(G6X_PARTIAL_WORDS, n)
   character(kind=c_char, len=80) :: text
   integer :: i

   m = [0.75_c_double, 0.25_c_double]
   x(:, 1) = [-0.25_c_double, 0.0_c_double, 0.5_c_double]
   x(:, 2) = [0.75_c_double, 2.0_c_double, -1.5_c_double]
   v(:, 1) = [0.0_c_double, -0.125_c_double, 0.5_c_double]
   v(:, 2) = [0.25_c_double, 0.375_c_double, 0.0_c_double]
   h2 = 10.0_c_double

   call expect('version', g6x_version(text, len(text)) > 0)
   call expect('version text', text(1:1) /= c_null_char)
   call expect('open', g6_open(3) == 0)
   call expect('set', g6x_set_int(3, G6X_PRECISION, G6X_DOUBLE) == 0)
   call expect('get', g6x_get_int(3, G6X_PRECISION, key) == 0 .and. key == G6X_DOUBLE)
   do i = 1, n
      call expect('j particle', g6_set_j_particle(3, i - 1, index(i), 1.0_c_double, &
                                                  0.5_c_double, m(i), zero, zero, zero, &
                                                  v(:, i), x(:, i)) == 0)
   end do

   call force(1.0_c_double)
   call expect('nearest', all(nn == [9, 7]))
   call expect('lists', g6_read_neighbour_list(3) == 0)
   call expect('list', g6_get_neighbour_list(3, 0, 4, length, list) == 0)
   call expect('its length', length == 1 .and. list(1) == 9)
   x = x + 0.5_c_double*v
   call force(1.5_c_double)

   ! The bulk form, with the addresses and the times left to the library.
   call expect('bulk', g6x_set_j_particles(3, n, c_null_ptr, c_loc(index), c_null_ptr, &
                                           c_null_ptr, m, c_null_ptr, c_null_ptr, &
                                           c_null_ptr, c_loc(v), x) == 0)
   call force(0.0_c_double)
   call expect('partial', g6x_get_partial(3, n, words) == 0)
   call expect('total', g6x_from_partial(n, words, acc2, jerk2, pot2) == 0)
   call expect('same bits', all(acc2 == acc) .and. all(jerk2 == jerk) .and. all(pot2 == pot))

   call expect('fault', g6_set_j_particle_mxonly(3, -1, 1, 1.0_c_double, zero) == G6X_E_ADDRESS)
   call expect('its code', g6x_last_error(3, text, len(text)) == G6X_E_ADDRESS)
   call expect('its text', text(1:1) /= c_null_char)
   call expect('close', g6_close(3) == 0)
   print '(a)', 'two bodies: all right'

contains

   ! Runs the board at the time ti and compares with the sum written out.
   subroutine force(ti)
      real(c_double), intent(in) :: ti
      real(c_double), parameter :: eps2 = 0.25_c_double
      real(c_double) :: r(3), w(3), s2, a(3), j(3)
      integer :: i, other

      call expect('time', g6_set_ti(3, ti) == 0)
      call expect('first half', g6calc_firsthalf(3, n, n, index, x, v, acc, jerk, pot, eps2, &
                                                 h2) == 0)
      call expect('last half', g6calc_lasthalf2(3, n, n, index, x, v, eps2, h2, acc, jerk, pot, &
                                                nn) == 0)
      do i = 1, n
         other = n + 1 - i
         r = x(:, other) - x(:, i)
         w = v(:, other) - v(:, i)
         s2 = sum(r**2) + eps2
         a = m(other)*r/s2**1.5_c_double
         j = m(other)*w/s2**1.5_c_double - 3*sum(r*w)/s2*a
         call expect('acc', near(acc(:, i), a))
         call expect('jerk', near(jerk(:, i), j))
         call expect('pot', near(pot(i:i), [-m(other)/sqrt(s2)]))
      end do
   end subroutine

   pure logical function near(got, want)
      real(c_double), intent(in) :: got(:), want(:)
      near = all(abs(got - want) <= 1.0e-14_c_double*maxval(abs(want)))
   end function

   subroutine expect(what, good)
      character(len=*), intent(in) :: what
      logical, intent(in) :: good
      if (good) return
      print '(2a)', 'two bodies: wrong: ', what
      stop 1
   end subroutine

end program two_body
