/* g6x_tree_share.c - the g6x_tree_ calls for trees of which each rank of a program has a part. */
#include <math.h>
#include <string.h>

#include "api/g6x_tree.h"
#include "core/options.h"
#include "g6lib.h"
#include "session/registry.h"
#include "tree/kernel.h"
#include "util/fpenv.h"
#include "util/memory.h"
#include "util/threads.h"

_Static_assert(sizeof(struct tree_region) == G6X_TREE_REGION * sizeof(double), "of a region");

enum { GRAIN = 8192 };

struct keying {
    const struct tree_box *box;
    const double (*x)[3];
    uint64_t *key;
};

static void find_keys(void *context, int64_t first, int64_t end)
{
    const struct keying *k = context;
    tree_walk_kernel(G6X_ISA_BEST)->keys(k->box, k->x + first, end - first, k->key + first);
}

int g6x_tree_keys(const double whole[G6X_TREE_WHOLE], int n, const double (*x)[3],
                  unsigned long long key[])
{
    _Static_assert(sizeof *key == sizeof(uint64_t), "keys");
    struct tree_whole w;
    struct tree_box box;
    int code = api_g6x_tree_whole(whole, &w);
    if (code) return code;
    if (n < 0 || (n && !(x && key)))
        return session_registry_refuse(n < 0 ? G6X_E_ARGUMENT : G6X_E_NULL,
                                       "g6x_tree_keys: n = %d, or a null pointer", n);
    FPENV_FLUSHED_HERE;
    tree_whole_box(&box, &w);
    struct keying k = {&box, x, (uint64_t *)key};
    threads_each(options_threads(session_registry_initial().threads), n, GRAIN, find_keys, &k);
    return 0;
}

int g6x_tree_by_key(int tree, int order[])
{
    int code;
    TREE_HERE(p, tree, &code);
    if (!p || !p->n) return code;
    if (!order) return session_registry_refuse(G6X_E_NULL, "g6x_tree_by_key: null pointer");
    if (p->tree.pieces)
        return session_registry_refuse(G6X_E_RANGE, "a tree in several boxes has no one order");
    memcpy(order, p->tree.points.order, (size_t)p->n * sizeof *order);
    return p->n;
}

int g6x_tree_part(int tree, double eps2, int method, int order, double theta, double bound,
                  int regions, const double (*region)[G6X_TREE_REGION], void *to,
                  long long capacity, long long *bytes)
{
    int code;
    TREE_HERE(p, tree, &code);
    if (!p) return code;
    const struct tree_setting s = {
        .method = method, .order = order, .theta = theta, .bound = bound, .isa = p->isa};
    const int is_known =
        method == G6X_TREE_BARNES_HUT ||
        (method == G6X_TREE_FMM && order >= TREE_LEAST_ORDER && order <= TREE_LARGEST_ORDER);
    if (!is_known || !(theta > 0.0 && theta <= TREE_WIDEST) ||
        !(bound >= 0.0 && bound < INFINITY) || !(eps2 >= 0.0 && eps2 < INFINITY) || regions < 0)
        return session_registry_refuse(
            G6X_E_ARGUMENT,
            "no part for eps2 %g, method %d, order %d, theta %g, bound %g, %d regions", eps2,
            method, order, theta, bound, regions);
    if (!bytes || (regions && !region))
        return session_registry_refuse(G6X_E_NULL, "g6x_tree_part: null pointer");
    if (p->tree.pieces)
        return session_registry_refuse(G6X_E_RANGE, "a tree in several boxes has no parts");
    FPENV_FLUSHED_HERE;
    struct tree own = p->tree;
    own.threads = options_threads(p->threads);
    struct subtree_header *part = tree_share_subtree(
        &own, &s, eps2, regions, (const struct tree_region *)(const void *)region);
    if (!part) return session_registry_refuse(G6X_E_MEMORY, "out of memory for a part of a tree");
    *bytes = part->bytes;
    if (to && *bytes <= capacity) memcpy(to, part, (size_t)*bytes);
    memory_free(part);
    return 0;
}
