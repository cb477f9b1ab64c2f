! A Fortran host that opens a device; tests/c/open_device.c is the same in C, and looks closer.
program open_device
  implicit none
  integer, external :: bridge_calls
  if (bridge_calls() /= 0) stop 9
end program
