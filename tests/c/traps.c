/* A host that traps floating-point exceptions, as gfortran -ffpe-trap does (row 32). */
#define _GNU_SOURCE
#include "board.h"

#include <fenv.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const int TRAPS = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW;

/* Does the host's own 1/0 still end a child with SIGFPE? */
static int still_traps(void)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        volatile double zero = 0.0, one = 1.0;
        signal(SIGFPE, SIG_DFL);
        one = one / zero;
        _exit(one > 0 ? 3 : 4);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGFPE;
}

int main(int argc, char **argv)
{
    Board *b = board_new();
    int threads = argc > 1 ? atoi(argv[1]) : 1, bad = 0;
    feenableexcept(TRAPS);
    bad += g6_open(0) != 0 || fegetexcept() != TRAPS;
    bad += g6x_set_int(0, G6X_THREADS, threads) != 0;
    bad += board_everything(b, 0, 1) != 0;
    bad += fegetexcept() != TRAPS || !still_traps();
    bad += board_force(b, 0, 0.0) != 0 || !still_traps();
    bad += g6_close(0) != 0 || fegetexcept() != TRAPS;
    return bad;
}
