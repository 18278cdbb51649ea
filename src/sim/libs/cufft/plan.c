/* The handles and the settings of plans. */
#include "sim/libs/cufft/plan.h"

#include "common/grow.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_cufft_plan **plans; /* indexed by handle; NULL: destroyed */
static int plan_count;

struct sim_cufft_plan *sim_cufft_find(cufftHandle handle)
{
    struct sim_cufft_plan *plan;

    pthread_mutex_lock(&lock);
    plan = handle >= 0 && handle < plan_count ? plans[handle] : NULL;
    pthread_mutex_unlock(&lock);
    return plan;
}

/* A free handle, or -1 without host memory; the lock is held. */
static int find_free_handle(void)
{
    for (int i = 0; i < plan_count; i++) {
        if (plans[i] == NULL) {
            return i;
        }
    }
    if (!SPW_RESIZE(&plans, (size_t)plan_count + 1)) {
        return -1;
    }
    plans[plan_count] = NULL;
    return plan_count++;
}

SIM_SHIM_EXPORT cufftResult cufftCreate(cufftHandle *handle)
{
    struct sim_cufft_plan *plan;
    int place;

    if (handle == NULL) {
        return CUFFT_INVALID_VALUE;
    }
    if (sim_shim_context() != CUDA_SUCCESS) {
        return CUFFT_SETUP_FAILED;
    }
    plan = calloc(1, sizeof(*plan));
    if (plan == NULL) {
        return CUFFT_ALLOC_FAILED;
    }
    plan->allocates = true;
    pthread_mutex_lock(&lock);
    place = find_free_handle();
    if (place >= 0) {
        plans[place] = plan;
    }
    pthread_mutex_unlock(&lock);
    if (place < 0) {
        free(plan);
        return CUFFT_ALLOC_FAILED;
    }
    *handle = place;
    return CUFFT_SUCCESS;
}

SIM_SHIM_EXPORT cufftResult cufftDestroy(cufftHandle plan)
{
    struct sim_cufft_plan *self = sim_cufft_find(plan);

    if (self == NULL) {
        return CUFFT_INVALID_PLAN;
    }
    pthread_mutex_lock(&lock);
    plans[plan] = NULL;
    pthread_mutex_unlock(&lock);
    sim_shim_free(self->own_area);
    free(self);
    return CUFFT_SUCCESS;
}

SIM_SHIM_EXPORT cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream)
{
    struct sim_cufft_plan *self = sim_cufft_find(plan);

    if (self == NULL) {
        return CUFFT_INVALID_PLAN;
    }
    self->stream = stream;
    return CUFFT_SUCCESS;
}

SIM_SHIM_EXPORT cufftResult cufftSetAutoAllocation(cufftHandle plan, int autoAllocate)
{
    struct sim_cufft_plan *self = sim_cufft_find(plan);

    if (self == NULL || self->is_made) {
        return CUFFT_INVALID_PLAN;
    }
    self->allocates = autoAllocate != 0;
    return CUFFT_SUCCESS;
}

SIM_SHIM_EXPORT cufftResult cufftSetWorkArea(cufftHandle plan, void *workArea)
{
    struct sim_cufft_plan *self = sim_cufft_find(plan);

    if (self == NULL) {
        return CUFFT_INVALID_PLAN;
    }
    sim_shim_free(self->own_area);
    self->own_area = NULL;
    self->area = workArea;
    return CUFFT_SUCCESS;
}

SIM_SHIM_EXPORT cufftResult cufftGetSize(cufftHandle plan, size_t *workSize)
{
    struct sim_cufft_plan *self = sim_cufft_find(plan);

    if (self == NULL || !self->is_made) {
        return CUFFT_INVALID_PLAN;
    }
    *workSize = self->area_bytes;
    return CUFFT_SUCCESS;
}

SIM_SHIM_EXPORT cufftResult cufftGetVersion(int *version)
{
    if (version == NULL) {
        return CUFFT_INVALID_VALUE;
    }
    *version = CUFFT_VERSION;
    return CUFFT_SUCCESS;
}

SIM_SHIM_PROPERTY(cufftGetProperty, cufftResult, CUFFT_INVALID_VALUE, CUFFT_VER_MAJOR,
                  CUFFT_VER_MINOR, CUFFT_VER_PATCH)
