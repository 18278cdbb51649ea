/* Execution of plans: launches that list the input, the output and the work area. */
#include "sim/libs/common/matrix.h"
#include "sim/libs/cufft/plan.h"

size_t sim_cufft_side_bytes(const struct sim_cufft_plan *plan, const struct sim_cufft_side *side)
{
    long long last = 0;

    for (int i = 0; i < plan->rank; i++) {
        last = last * side->embed[i] + side->extents[i] - 1;
    }
    last = last * side->stride + (plan->batch - 1) * side->distance;
    return (size_t)(last + 1) * sim_shim_type_bits(side->type) / 8;
}

static cufftResult execute(cufftHandle handle, const void *input, void *output)
{
    struct sim_cufft_plan *plan = sim_cufft_find(handle);
    struct sim_shim_work work = {.count = 0};

    if (plan == NULL || !plan->is_made) {
        return CUFFT_INVALID_PLAN;
    }
    if (input == NULL || output == NULL) {
        return CUFFT_INVALID_VALUE;
    }
    if (plan->area == NULL && plan->area_bytes > 0) {
        return CUFFT_NO_WORKSPACE;
    }
    sim_shim_add_read(&work, input, sim_cufft_side_bytes(plan, &plan->in));
    sim_shim_add_write(&work, output, sim_cufft_side_bytes(plan, &plan->out));
    sim_shim_add_write(&work, plan->area, plan->area_bytes);
    return sim_shim_launch("fft", &work, plan->stream) == CUDA_SUCCESS ? CUFFT_SUCCESS
                                                                       : CUFFT_EXEC_FAILED;
}

SIM_SHIM_EXPORT cufftResult cufftXtExec(cufftHandle plan, void *input, void *output, int direction)
{
    return execute(plan, input, output);
}

#define EXEC_COMPLEX(name, type)                                                                   \
    SIM_SHIM_EXPORT cufftResult name(cufftHandle plan, type *idata, type *odata, int direction)    \
    {                                                                                              \
        return execute(plan, idata, odata);                                                        \
    }

#define EXEC_REAL(name, from, to)                                                                  \
    SIM_SHIM_EXPORT cufftResult name(cufftHandle plan, from *idata, to *odata)                     \
    {                                                                                              \
        return execute(plan, idata, odata);                                                        \
    }

EXEC_COMPLEX(cufftExecC2C, cufftComplex)
EXEC_COMPLEX(cufftExecZ2Z, cufftDoubleComplex)
EXEC_REAL(cufftExecR2C, cufftReal, cufftComplex)
EXEC_REAL(cufftExecC2R, cufftComplex, cufftReal)
EXEC_REAL(cufftExecD2Z, cufftDoubleReal, cufftDoubleComplex)
EXEC_REAL(cufftExecZ2D, cufftDoubleComplex, cufftDoubleReal)
