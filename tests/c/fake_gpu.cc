/* fake_gpu.cc - the CUDA driver's entry points (struct driver of csrc/core/device.h) for
 * fake_gpu.h. */
#include <cstdlib>
#include <mutex>
#include <string>
#include <ucontext.h>
#include <vector>

#include "fake_gpu.h" /* last: libstdc++ of GCC 13 says __noinline__, which CUDA defines */

struct fake_gpu_dim threadIdx, blockIdx, blockDim, gridDim;
uint64_t fake_gpu_exchange[2][32 * 32];
unsigned fake_gpu_turn;

namespace
{

enum state { RUNNABLE, AT_WARP, AT_BLOCK, ENDED };
enum { STACK = 1 << 17, MOST = 32 * 32, STAGGER = 9 * 64 };

/* Changes over by gcc's own long jumps: swapcontext would call the kernel each time, for the signal
 * mask, and those of libc look for what they jump over. */
typedef void *place[5];

struct fibre {
    ucontext_t start;
    std::vector<char> stack;
};

/* What each change reads lies together. */
fibre fibres[MOST];
place scheduler, here[MOST];
unsigned char states[MOST];
unsigned current, last_of_warp;
void (*kernel)(const void *);
const void *kernel_job;

void run_fibre(void);

/* A stack begins elsewhere in its page than the others of the warp, which would else take the same
 * lines of the cache. */
void begin()
{
    fibre &f = fibres[current];
    getcontext(&f.start);
    f.stack.resize(STACK);
    f.start.uc_stack.ss_sp = f.stack.data();
    f.start.uc_stack.ss_size = f.stack.size() - current % 32 * STAGGER;
    f.start.uc_link = nullptr;
    makecontext(&f.start, run_fibre, 0);
    setcontext(&f.start);
    abort();
}

/* The next thread of the warp that can run does, or the scheduler after the last. */
[[noreturn, gnu::noinline, gnu::hot]] void run_next()
{
    while (++current < last_of_warp) {
        if (states[current] != RUNNABLE) continue;
        threadIdx.x = current;
        if (!here[current][1]) begin();
        __builtin_longjmp(here[current], 1);
    }
    __builtin_longjmp(scheduler, 1);
}

[[gnu::noinline]] void change_over(state why)
{
    states[current] = why;
    if (!__builtin_setjmp(here[current])) run_next();
}

/* A fibre runs one thread after another. */
void run_fibre()
{
    for (;;) {
        kernel(kernel_job);
        change_over(ENDED);
    }
}

/* Lets those go on who wait in [first, last) for each other, if all there do or have ended. */
bool release(unsigned first, unsigned last, state at)
{
    unsigned waiting = 0, ended = 0;
    for (unsigned t = first; t < last; t++) {
        waiting += states[t] == at;
        ended += states[t] == ENDED;
    }
    if (!waiting || waiting + ended < last - first) return false;
    for (unsigned t = first; t < last; t++) states[t] = states[t] == at ? RUNNABLE : states[t];
    return true;
}

[[gnu::noinline]] void run_each(unsigned first, unsigned last)
{
    current = first - 1;
    last_of_warp = last;
    if (!__builtin_setjmp(scheduler)) run_next();
}

/* A warp runs until its threads wait for the block. */
void run_warp(unsigned first, unsigned last)
{
    do {
        fake_gpu_turn ^= 1;
        run_each(first, last);
    } while (release(first, last, AT_WARP));
}

void run_block(unsigned threads)
{
    for (unsigned t = 0; t < threads; t++) states[t] = RUNNABLE;
    do
        for (unsigned w = 0; w < threads; w += 32) run_warp(w, w + 32 < threads ? w + 32 : threads);
    while (release(0, threads, AT_BLOCK));
    for (unsigned t = 0; t < threads; t++)
        if (states[t] != ENDED) abort(); /* a barrier that not all reach */
}

/* Driver calls from now on until one fails, and with what; 0 is never. */
long calls_left;
int failure;
bool sticky;
bool skipping;
std::string calls; /* a letter each */
long uses_left;    /* until one fails; 0 is never */
std::mutex one_at_a_time;

/* A stream of the caller's, and what is done when it is waited for, or the error that it gives. */
void *callers;
void (*callers_work)(void);
int callers_error;

int fails(char call)
{
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    calls += call;
    if (calls_left == 0) return 0;
    if (calls_left > 1) {
        calls_left--;
        return 0;
    }
    if (!sticky) calls_left = 0;
    return failure;
}

} // namespace

void fake_gpu_wait_for_block(void) { change_over(AT_BLOCK); }
void fake_gpu_wait_for_warp(void) { change_over(AT_WARP); }

extern "C" {

/* For tests: the n-th launch, copy, fill or query from now on fails, and all after it. */
void fake_gpu_fail(long n, int code, int for_ever)
{
    calls_left = n;
    failure = code;
    sticky = for_ever != 0;
}

/* For tests: the driver's calls since this one's last: (l)aunch, (i)n, (o)ut, (f)ill, (w)ait,
 * (q)uery. */
const char *fake_gpu_calls(void)
{
    static std::string last;
    last.swap(calls);
    calls.clear();
    return last.c_str();
}

/* For tests: launches do nothing from now on, and say nothing. */
void fake_gpu_skip(int on) { skipping = on != 0; }

/* For tests: a stream other than the GPU's own, with work that is not done before it is waited
 * for, or that gives an error. */
void fake_gpu_stream(void *stream, void (*work)(void), int error)
{
    callers = stream;
    callers_work = work;
    callers_error = error;
}

/* For tests: the n-th use of a GPU from now on finds it gone. */
void fake_gpu_vanish(long n) { uses_left = n; }

int fake_gpu_push_context(void *)
{
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    return uses_left > 0 && --uses_left == 0 ? 719 : 0;
}
int fake_gpu_pop_context(void **) { return 0; }

int fake_gpu_launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                    unsigned block_x, unsigned, unsigned, unsigned, void *, void **arguments,
                    void **)
{
    const char *order = getenv("GRAPE6_TEST_FAKE_GPU_ORDER"); /* backwards, if it is set */
    static std::mutex one_at_a_time;                          /* several devices are one */
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    if (int code = fails('l')) return code;
    if (skipping) return 0;
    gridDim = {grid_x, grid_y, grid_z};
    blockDim = {block_x, 1, 1};
    kernel = (void (*)(const void *))function;
    kernel_job = arguments[0];
    const unsigned blocks = grid_x * grid_y;
    for (unsigned b = 0; b < blocks; b++) {
        const unsigned k = order ? blocks - 1 - b : b;
        blockIdx = {k % grid_x, k / grid_x, 0};
        run_block(block_x);
    }
    return 0;
}

int fake_gpu_copy_in(uint64_t to, const void *from, size_t bytes, void *)
{
    if (int code = fails('i')) return code;
    memcpy((void *)to, from, bytes);
    return 0;
}

int fake_gpu_copy_out(void *to, uint64_t from, size_t bytes, void *)
{
    if (int code = fails('o')) return code;
    memcpy(to, (const void *)from, bytes);
    return 0;
}

int fake_gpu_fill(uint64_t to, unsigned char value, size_t bytes, void *)
{
    if (int code = fails('f')) return code;
    memset((void *)to, value, bytes);
    return 0;
}

/* What a caller's stream was given is done when somebody asks. */
static int callers_state(void *stream)
{
    if (stream == callers && callers_work) callers_work();
    return stream == callers ? callers_error : 0;
}

int fake_gpu_query(void *stream)
{
    const int error = callers_state(stream);
    return error ? error : fails('q');
}

int fake_gpu_record(void *, void *) { return fails('r'); }
int fake_gpu_follow(void *, void *, unsigned) { return fails('e'); }

int fake_gpu_error_text(int error, const char **text)
{
    *text = error == 2 ? "out of memory" : "an error made for a test";
    return 0;
}

/* What the library asks the true driver, too. */
static int there;
void fake_gpu_present(int yes) { there = yes; }
int cuInit(unsigned) { return there ? 0 : 100; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuGetErrorString(int error, const char **text) { return fake_gpu_error_text(error, text); }
}
