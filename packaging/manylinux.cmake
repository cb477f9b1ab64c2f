# A toolchain file for wheels: compiled by gcc, linked by Zig, whose linker knows the names that
# glibc 2.28 has; so a wheel for old systems is built on any system, without a container.
#
#   CMAKE_TOOLCHAIN_FILE=packaging/manylinux.cmake pip wheel .     # zig on PATH: release.py
#
# What the kernels need of a compiler's own library is gcc's. Zig's knows of no AVX2 or AVX-512 in
# the processor (__builtin_cpu_supports): a library with that would leave them unused without a word.
find_program(ZIG zig REQUIRED)
execute_process(COMMAND gcc -print-libgcc-file-name OUTPUT_VARIABLE libgcc
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(CONCAT CMAKE_C_CREATE_SHARED_LIBRARY
       "${ZIG} cc -target ${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu.2.28 -rtlib=none "
       "-O2 <LINK_FLAGS> -shared <SONAME_FLAG><TARGET_SONAME> -o <TARGET> "
       "<OBJECTS> <LINK_LIBRARIES> ${libgcc}")
