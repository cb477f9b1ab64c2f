/* card.cc - the CUDA driver's entry points (struct driver of csrc/device.h) for card.h. */
#include "card.h"

#include <cstdlib>
#include <ucontext.h>
#include <vector>

struct card_dim threadIdx, blockIdx, blockDim, gridDim;
uint64_t card_exchange[32 * 32];

namespace {

enum state { RUNNABLE, AT_WARP, AT_BLOCK, ENDED };
enum { STACK = 1 << 17 };

struct fibre {
    ucontext_t context;
    std::vector<char> stack;
    state at;
};

std::vector<fibre> fibres;
ucontext_t scheduler;
unsigned current;
void (*kernel)(const void *);
const void *kernel_job;

void run_fibre()
{
    kernel(kernel_job);
    fibres[current].at = ENDED;
    swapcontext(&fibres[current].context, &scheduler);
}

void change_over(state why)
{
    const unsigned self = current;
    fibres[self].at = why;
    swapcontext(&fibres[self].context, &scheduler);
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
    for (unsigned t = 0; t < threads; t++) {
        fibre &f = fibres[t];
        f.stack.resize(STACK);
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.data();
        f.context.uc_stack.ss_size = f.stack.size();
        f.context.uc_link = nullptr;
        makecontext(&f.context, run_fibre, 0);
        f.at = RUNNABLE;
    }
    for (bool going = true; going;) {
        going = false;
        for (unsigned t = 0; t < threads; t++) {
            if (fibres[t].at != RUNNABLE) continue;
            going = true;
            current = t;
            threadIdx.x = t;
            swapcontext(&scheduler, &fibres[t].context);
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

int fails(void)
{
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

/* For tests: launches do nothing from now on, and say nothing. */
void card_skip(int on) { skipping = on != 0; }

int card_push_context(void *) { return 0; }
int card_pop_context(void **) { return 0; }

int card_launch(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned, unsigned, unsigned, void *, void **arguments, void **)
{
    const char *order = getenv("GRAPE6_TEST_CARD_ORDER"); /* backwards, if it is set */
    if (int code = fails()) return code;
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
    if (int code = fails()) return code;
    memcpy((void *)to, from, bytes);
    return 0;
}

int card_copy_out(void *to, uint64_t from, size_t bytes, void *)
{
    if (int code = fails()) return code;
    memcpy(to, (const void *)from, bytes);
    return 0;
}

int card_fill(uint64_t to, unsigned char value, size_t bytes, void *)
{
    if (int code = fails()) return code;
    memset((void *)to, value, bytes);
    return 0;
}

int card_wait(void *) { return fails(); }
int card_query(void *) { return fails(); }

int card_record(void *, void *) { return fails(); }
int card_follow(void *, void *, unsigned) { return fails(); }

int card_error_text(int error, const char **text)
{
    *text = error == 2 ? "out of memory" : "an error made for a test";
    return 0;
}
}
