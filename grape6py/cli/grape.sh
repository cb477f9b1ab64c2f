# local/grape.sh of Starlab, whose configure looks for g6_open_ in the library of GRAPE_LIBS_.
GRAPE_LDFLAGS_='-L@libdir@ -Wl,-rpath,@libdir@'
GRAPE_LIBS_='-lgrape6'
OLD_READ_NEIGHBOUR_LIST=no
