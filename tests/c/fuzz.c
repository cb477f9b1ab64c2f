/* Random call sequences, valid and invalid, against a model of the contract; see fuzz.h.
 * usage: fuzz SEED FIRST COUNT [trace]
 * runs the sequences FIRST .. FIRST + COUNT - 1 of a seed. Silent, and 0, if the library did what
 * the model foretold; else the sequence and its calls are printed, and the code is 1. For a library
 * and a program built with address and undefined-behaviour sanitizers. */
#include "fuzz_calls.h"

#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

int tracing, wild, by_tree;
const char *calling = "nothing yet", *backend = "cpu";

static uint64_t state;
static unsigned long long seed, sequence;
static int calls;
static const char *program;

/* Sebastiano Vigna's splitmix64. */
uint64_t any_bits(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int below(int n) { return (int)((any_bits() >> 32) * (uint64_t)n >> 32); }

void say(const char *format, ...)
{
    va_list arguments;
    if (!tracing) return;
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
}

static void where(void)
{
    fprintf(stderr, "\nfuzz: seed %llu, sequence %llu, call %d (%s)\n", seed, sequence, calls,
            calling);
}

void broken(const char *format, ...)
{
    char numbers[2][24];
    va_list arguments;
    where();
    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    if (!tracing && strchr(program, '/')) { /* once more, with its calls */
        (void)snprintf(numbers[0], sizeof numbers[0], "%llu", seed);
        (void)snprintf(numbers[1], sizeof numbers[1], "%llu", sequence);
        fprintf(stderr, "again: %s %llu %llu 1 trace\n", program, seed, sequence);
        (void)execl("/proc/self/exe", program, numbers[0], numbers[1], "1", "trace", (char *)NULL);
    }
    _exit(1);
}

/* A sanitizer that ends the program says where it was, too. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1:malloc_context_size=4:allocator_release_to_os_interval_ms=-1";
}
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "print_stacktrace=1:abort_on_error=1"; }
static void at_abort(int signal)
{
    (void)signal;
    where();
    _exit(1);
}

void *tail_of(int slot, size_t bytes)
{
    enum { SLOTS = 32, CAPACITY = 32768 };
    static char *piece[SLOTS];
    if (!piece[slot] && !(piece[slot] = malloc(CAPACITY))) exit(1);
    if (bytes > CAPACITY) broken("slot %d cannot hold %zu bytes", slot, bytes);
    return piece[slot] + CAPACITY - bytes;
}

static double uniform(void) { return (double)(any_bits() >> 11) * 0x1p-52 - 1.0; }

static double extreme(void)
{
    static const double ODD[] = {NAN,   INFINITY, -INFINITY, 5e-324, -1e-310, 1e-300,
                                 1e300, -1e200,   1e100,     1e-100, 1e30,    -1e-30,
                                 1e15,  1.7e308,  -0.0,      0.0};
    return chance(4) ? ODD[below(16)] : ODD[8 + below(8)];
}

double any_coordinate(void)
{
    if (wild && chance(40)) return extreme();
    if (chance(2)) return below(33) * 0.125 - 2.0;
    return chance(12) ? uniform() * 1e-8 : uniform();
}

double any_mass(void)
{
    if (wild && chance(20)) return extreme();
    return chance(8) ? 0.0 : chance(2) ? below(9) * 0.125 : uniform() + 1.0;
}

double any_time(void)
{
    if (wild && chance(30)) return extreme();
    return chance(3) ? 0.0 : below(17) * 0.0625;
}

double any_square(void)
{
    if (wild && chance(25)) return extreme();
    if (wild && chance(40)) return -1.0;
    return chance(2) ? 0.0 : chance(2) ? below(17) * 0.25 : chance(4) ? 1e-12 : uniform() + 1.0;
}

int any_index(void)
{
    static const int ODD[] = {-1, -1, 2147483647, -2147483647 - 1, 1 << 24, (1 << 24) + 1};
    if (chance(12)) return ODD[below(6)];
    return chance(3) ? below(5) : below(40);
}

static int last_was_first;

static void make_call(void)
{
    static void (*const COMMON[])(void) = {try_write, try_write_many, try_time, try_first,
                                           try_first, try_last,       try_last, try_lists};
    static void (*const RARE[])(void) = {try_open,      try_close, try_nothing, try_idle,
                                         try_predicted, try_texts, try_options, try_options,
                                         try_scale,     try_pipes, try_pipes,   try_partial,
                                         try_block,     try_tree,  try_walks};
    void (*call)(void) = chance(3) ? RARE[below(15)] : COMMON[below(8)];
    if (last_was_first && !chance(3))
        call = chance(6) ? try_partial : try_last;
    else if (last_was_first && chance(3))
        call = try_options;
    calls++;
    say("\n%d: ", calls);
    last_was_first = call == try_first;
    call();
    while (listing > 0 && !chance(20)) try_write();
    listing = 0;
}

static void run_sequence(void)
{
    state = seed * 0x2545f4914f6cdd1du ^ sequence * 0x9e3779b97f4a7c15u;
    (void)any_bits();
    wild = chance(4);
    calls = 0;
    last_was_first = 0;
    forget_first();
    if (g6_open(0) != 0 || g6_close(0) != 0 || g6_set_neighbour_list_sort_mode(0) != 0)
        broken("open and close failed");
    model_reset();
    for (int key = 1; key < NSETTING; key++) { /* nothing is open: first values */
        static const int FIRST[NSETTING] = {0, 0, 1, 0, 1, 1, 0, G6X_AUTO, G6X_AUTO, G6X_AUTO};
        model.settings[key] = key == G6X_PRECISION ? below(3) : FIRST[key];
        if (key == G6X_ISA && chance(3)) model.settings[key] = 1 + below(NISA - 1);
        if (key == G6X_ISA && !model.isa[model.settings[key]]) model.settings[key] = 0;
        if (g6x_set_int(0, key, model.settings[key]) != 0) broken("first value %d refused", key);
    }
    model.verify = chance(8) ? 1 : 0;
    if (g6x_set_double(0, G6X_VERIFY, model.verify) != 0) broken("verification refused");
    model.theta = by_tree ? 1e-3 : 0.5, model.tree[0] = G6X_TREE_FMM, model.tree[1] = 5;
    if (g6x_set_double(0, G6X_THETA, model.theta) != 0 || g6x_set_int(0, G6X_TREE_ORDER, 5) != 0 ||
        g6x_set_int(0, G6X_TREE_METHOD, G6X_TREE_FMM) != 0)
        broken("a tree's options refused");
    if (g6x_clear_error(0) != 0) broken("clear refused");
    say("first values: precision %d isa %d verify %g", model.settings[1], model.settings[3],
        model.verify);
    if (!chance(8)) try_open();
    for (int n = 5 + (chance(6) ? below(56) : below(20)); n > 0; n--) make_call();
    close_trees();
    for (int k = 0; k < model.nclusters; k++) {
        const int64_t id = model.cluster[k].id;
        if (model.cluster[k].state == EXPLICIT &&
            (id == ID_ALL ? g6_close_all() : g6_close((int)id)))
            broken("close failed");
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    program = argv[0];
    if (getenv("GRAPE6_BACKEND")) backend = getenv("GRAPE6_BACKEND");
    by_tree = strstr(backend, "tree") != NULL;
    seed = strtoull(argv[1], NULL, 10);
    const unsigned long long first = strtoull(argv[2], NULL, 10);
    const unsigned long long count = strtoull(argv[3], NULL, 10);
    tracing = argc > 4;
    (void)signal(SIGABRT, at_abort);
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(where);
    for (int isa = 0; isa < NISA; isa++) model.isa[isa] = g6x_set_int(0, G6X_ISA, isa) == 0;
    model.npipes = g6_npipes();
    for (sequence = first; sequence < first + count; sequence++) run_sequence();
    return 0;
}
