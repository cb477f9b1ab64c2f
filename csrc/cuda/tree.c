/* tree.c - octrees on a graphics card: sorting and building are the Python side's, so that one
 * call leads there (grape6py/cuda/tree.py). */
#include "cuda/cuda.h"

int cuda_tree(void *state, struct tree_errand *errand, struct fault *f)
{
    struct cuda *c = state;
    int code = cuda_device_enter(c, f);
    if (code) return code;
    code = cuda_device_answer(c, c->bridge->tree(&c->device, errand), f);
    cuda_device_leave(c);
    return code;
}
