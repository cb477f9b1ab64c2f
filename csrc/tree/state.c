/* state.c - the tree of the j particles, here or on the device: see state.h. */
#include "tree/state.h"

#include "cuda/cuda.h"
#include "tree/boxes.h"
#include "util/fpenv.h"

int tree_state_no_memory(struct error *err, const char *what, int64_t n)
{
    return error_set(err, G6X_E_MEMORY, "out of memory for %lld %s", (long long)n, what);
}

int tree_state_build_here(struct octree *t, struct error *err)
{
    const struct tree_input in = tree_sources_input(&t->sources);
    if (t->searchable) return 0;
    fpenv_flush(1);
    const int code =
        tree_boxes_build(&t->tree, &in, NULL, options_threads(t->options.threads), err);
    fpenv_flush(0);
    t->searchable = !code;
    return code;
}

int tree_state_by_device(struct octree *t, struct tree_request *request, int *done,
                         struct error *err)
{
    const struct sources *s = &t->sources;
    *done = 0;
    if (!t->on_device || t->in_pieces) return 0;
    request->sources = s->n;
    request->x = &s->x[0][0];
    request->v = s->v ? &s->v[0][0] : NULL;
    request->m = s->m;
    request->changed = t->fresh;
    const int code = cuda_backend_tree(t->direct, request, err);
    if (code) return code;
    t->fresh = 0;
    t->in_pieces = request->unresolved;
    *done = !t->in_pieces;
    return 0;
}
