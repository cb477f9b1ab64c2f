/* card.cc - the CUDA driver's entry points (struct driver of csrc/device.h) for card.h. */
#include "card.h"

#include <csetjmp>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <ucontext.h>
#include <vector>

struct card_dim threadIdx, blockIdx, blockDim, gridDim;
uint64_t card_exchange[32 * 32];

namespace {

enum state { RUNNABLE, AT_WARP, AT_BLOCK, ENDED };
enum { STACK = 1 << 17 };

struct fibre {
    ucontext_t start;
    jmp_buf here;
    std::vector<char> stack;
    state at;
    bool begun;
};

std::deque<fibre> fibres; /* which stay where they are when more come */
jmp_buf scheduler;
unsigned current;
void (*kernel)(const void *);
const void *kernel_job;

/* Changes over by longjmp: swapcontext would call the kernel each time, for the signal mask. */
void change_over(state why)
{
    fibre &self = fibres[current];
    self.at = why;
    if (!_setjmp(self.here)) _longjmp(scheduler, 1);
}

/* A fibre runs one thread after another. */
void run_fibre()
{
    for (;;) {
        kernel(kernel_job);
        change_over(ENDED);
    }
}

void let_run(unsigned t)
{
    fibre &f = fibres[t];
    current = t;
    threadIdx.x = t;
    if (_setjmp(scheduler)) return;
    if (f.begun) _longjmp(f.here, 1);
    f.begun = true;
    getcontext(&f.start);
    f.stack.resize(STACK);
    f.start.uc_stack.ss_sp = f.stack.data();
    f.start.uc_stack.ss_size = f.stack.size();
    f.start.uc_link = nullptr;
    makecontext(&f.start, run_fibre, 0);
    setcontext(&f.start);
}

/* Lets those go on who wait in [first, last) for each other, if all there do or have ended. */
bool release(unsigned first, unsigned last, state at)
{
    bool any = false;
    for (unsigned t = first; t < last; t++) {
        if (fibres[t].at != at && fibres[t].at != ENDED) return false;
        any |= fibres[t].at == at;
    }
    for (unsigned t = first; any && t < last; t++)
        if (fibres[t].at == at) fibres[t].at = RUNNABLE;
    return any;
}

void run_block(unsigned threads)
{
    if (fibres.size() < threads) fibres.resize(threads);
    for (unsigned t = 0; t < threads; t++) fibres[t].at = RUNNABLE;
    for (bool going = true; going;) {
        going = false;
        for (unsigned t = 0; t < threads; t++) {
            if (fibres[t].at != RUNNABLE) continue;
            going = true;
            let_run(t);
        }
        for (unsigned w = 0; w < threads; w += 32)
            going |= release(w, w + 32 < threads ? w + 32 : threads, AT_WARP);
        going |= release(0, threads, AT_BLOCK);
    }
    for (unsigned t = 0; t < threads; t++)
        if (fibres[t].at != ENDED) abort(); /* a barrier that not all reach */
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

void card_wait_for_block(void) { change_over(AT_BLOCK); }
void card_wait_for_warp(void) { change_over(AT_WARP); }

extern "C" {

/* For tests: the n-th launch, copy, fill, wait or query from now on fails, and all after it. */
void card_fail(long n, int code, int for_ever)
{
    calls_left = n;
    failure = code;
    sticky = for_ever != 0;
}

/* For tests: the driver's calls since this one's last: (l)aunch, (i)n, (o)ut, (f)ill, (w)ait,
 * (q)uery. */
const char *card_calls(void)
{
    static std::string last;
    last.swap(calls);
    calls.clear();
    return last.c_str();
}

/* For tests: launches do nothing from now on, and say nothing. */
void card_skip(int on) { skipping = on != 0; }

/* For tests: a stream other than the card's own, with work that is not done before it is waited for,
 * or that gives an error. */
void card_stream(void *stream, void (*work)(void), int error)
{
    callers = stream;
    callers_work = work;
    callers_error = error;
}

/* For tests: the n-th use of a card from now on finds it gone. */
void card_vanish(long n) { uses_left = n; }

int card_push_context(void *)
{
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    return uses_left > 0 && --uses_left == 0 ? 719 : 0;
}
int card_pop_context(void **) { return 0; }

int card_launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned, unsigned, unsigned, void *, void **arguments, void **)
{
    const char *order = getenv("GRAPE6_TEST_CARD_ORDER"); /* backwards, if it is set */
    static std::mutex one_at_a_time; /* several devices are one */
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

int card_copy_in(uint64_t to, const void *from, size_t bytes, void *)
{
    if (int code = fails('i')) return code;
    memcpy((void *)to, from, bytes);
    return 0;
}

int card_copy_out(void *to, uint64_t from, size_t bytes, void *)
{
    if (int code = fails('o')) return code;
    memcpy(to, (const void *)from, bytes);
    return 0;
}

int card_fill(uint64_t to, unsigned char value, size_t bytes, void *)
{
    if (int code = fails('f')) return code;
    memset((void *)to, value, bytes);
    return 0;
}

int card_wait(void *stream)
{
    if (stream == callers && callers_error) return callers_error;
    if (stream == callers && callers_work) callers_work();
    return fails('w');
}
int card_query(void *) { return fails('q'); }

int card_record(void *, void *) { return fails('r'); }
int card_follow(void *, void *, unsigned) { return fails('e'); }

int card_error_text(int error, const char **text)
{
    *text = error == 2 ? "out of memory" : "an error made for a test";
    return 0;
}
}
