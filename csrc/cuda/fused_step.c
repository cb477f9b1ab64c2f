/* fused_step.c - Hermite integrations of few particles: see arrays.h. */
#include "cuda/arrays.h"

#include "cuda/force.h"
#include "core/hermite.h"

/* The device's slots must equal the j memory. Its buffers must hold all particles, since their
 * contents are kept from launch to launch. */
int cuda_fused_step_can(struct cuda *c, struct jmemory *j, const struct g6x_hermite *h,
                        void *stream)
{
    struct error quiet = {.quiet = 1};
    const struct dirty_list *list = cuda_dirty_list(c, j);
    if (h->n < 1 || h->n > CUDA_FUSED_STEP_MOST || c->memory != j || c->slots < j->capacity ||
        list->overflow || list->count || list->first < list->end)
        return 0;
    c->targets = (struct targets){.on_device = 1};
    return !cuda_device_wait_for_caller(c, stream, &quiet) && !cuda_jparticles_flush(c, &quiet) &&
           !cuda_sum_clean_up(c, &quiet) && !cuda_device_clear_notes(c, &quiet) &&
           !cuda_sum_reserve_targets(c, h->n, &quiet) &&
           !cuda_device_reserve(c, &c->fused_fine, MEMORY_DEVICE, CUDA_FUSED_STEP_MOST * 4,
                                &quiet) &&
           !cuda_results_reserve(c, h->n, &quiet);
}

int cuda_fused_step_prepare(struct cuda *fine, int n, struct error *err)
{
    fine->targets = (struct targets){.on_device = 1};
    int code = cuda_sum_clean_up(fine, err);
    if (!code) code = cuda_sum_reserve_targets(fine, n, err);
    if (!code) code = cuda_results_reserve(fine, n, err);
    if (!code) fine->launched = 0;
    return code;
}

static struct cuda_fused_step_job job_of(struct cuda *c, const struct cuda *fine,
                                         const struct g6x_hermite *h,
                                         const struct device_fused_step *step)
{
    const struct cuda *const of[] = {c, fine ? fine : c};
    return (struct cuda_fused_step_job){
        .state = hermite_state_of(h),
        .rule = {h->eta, h->dtmin, h->dtmax},
        .common = hermite_common(h),
        .time = step->time,
        .n = h->n,
        .rows = step->ni,
        .acting = hermite_acting(h),
        .work = hermite_work_of(h),
        .mass = h->mass,
        .rounding = h->rounding,
        .noise = step->noise,
        .address = h->address,
        .xi = h->xi,
        .vi = h->vi,
        .sum = {cuda_results_in(c, &c->device_results).sum,
                cuda_results_in(of[1], &of[1]->device_results).sum},
        .stride = {c->stride, of[1]->stride},
        .left_count = {cuda_pointer(&c->left_count), cuda_pointer(&of[1]->left_count)},
        .fine = fine ? cuda_pointer(&c->fused_fine) : NULL,
        .fine_targets = cuda_pointer(&of[1]->device_targets),
        .store = cuda_jparticles_store(c),
        .sent = cuda_pointer(&c->sent),
        .targets = cuda_pointer(&c->device_targets),
        .eps2 = step->eps2,
        .notes = cuda_notes(c),
        .step = ++c->fused_steps,
    };
}

int cuda_fused_step_run(struct cuda *c, struct cuda *fine, struct jmemory *j,
                        const struct g6x_hermite *h, struct device_fused_step *step,
                        struct error *err)
{
    struct cuda_fused_step_job job = job_of(c, fine, h, step);
    const struct cuda_notes *notes = job.notes;
    if (step->field) job.field = *step->field;
    if (!h->field_acc && !field_is_none(&job.field)) job.noise.noise = 0.0; /* as on the host */
    int code = c->busy > 1 ? cuda_device_idle(c, "sum", err) : 0;
    if (!code && fine && fine->launched)
        code = fine->busy > 1 ? cuda_device_idle(fine, "sum", err)
                              : cuda_device_follow(c, 0, fine->device.stream[0], err);
    c->unread = 1;
    if (!code) code = cuda_device_launch(c, 0, KERNEL_FUSED_STEP, 1, 1, &job, err);
    if (!code) code = cuda_results_wait_for(c, &notes->step, job.step, "fused_step", err);
    if (!code && step->ni) code = cuda_results_wait(c, step->ni, err); /* already complete */
    if (!code && fine && step->ni) code = cuda_results_wait(fine, fine->targets.ni, err);
    if (code) return code;
    c->unread = 0;
    step->incomplete = notes->incomplete;
    step->invalid =
        step->ni && !step->incomplete && notes->invalid != CUDA_NO_ROW ? notes->invalid : -1;
    step->clamped = notes->clamped;
    step->next = notes->time;
    step->next_ni = notes->count;
    step->fine = notes->fine;
    if (!step->ni || step->incomplete || step->invalid >= 0) return 0;
    return cuda_arrays_j_mirror(c, j, job.sent, notes->acting, err);
}

int cuda_fused_step_sum(struct cuda *c, const struct upload *u, int ni, double eps2,
                        struct error *err)
{
    c->turn_eps2 = eps2;
    const struct targets targets = {.ni = ni, .eps2 = &c->turn_eps2, .on_device = 1};
    return cuda_force_start(c, u, &targets, 0, 1, err);
}
