/* The functions that make plans. */
#include <string.h>

#include "sim/libs/common/matrix.h"
#include "sim/libs/cufft/plan.h"

/* cuFFT has fast kernels for sizes whose prime factors are at most this one, as documented under
 * "Accuracy and Performance". */
#define LARGEST_FAST_FACTOR 127

/* cuFFT documents for plans that a work area holds 1 to 8 times the transform's elements. */
#define AREA_LEAST 1
#define AREA_MOST  8

/* The requested memory layout; `embed` is NULL for packed elements. */
struct layout {
    long long *embed;
    long long stride;
    long long distance;
    cudaDataType type;
};

static bool is_complex(cudaDataType type)
{
    return type == CUDA_C_32F || type == CUDA_C_64F || type == CUDA_C_16F || type == CUDA_C_16BF;
}

static bool has_fast_kernel(long long size)
{
    for (long long factor = 2; factor <= LARGEST_FAST_FACTOR; factor++) {
        while (size % factor == 0) {
            size /= factor;
        }
    }
    return size == 1;
}

/* An estimate within the documented bounds: the lower bound for sizes with fast kernels, the upper
 * bound for other sizes. */
static size_t area_bytes(const struct sim_cufft_plan *plan, const long long *n)
{
    const struct sim_cufft_side *side = is_complex(plan->in.type) ? &plan->in : &plan->out;
    size_t elements = (size_t)plan->batch;
    bool fast = true;

    for (int i = 0; i < plan->rank; i++) {
        elements *= (size_t)n[i];
        fast = fast && has_fast_kernel(n[i]);
    }
    if (is_complex(plan->in.type) != is_complex(plan->out.type)) {
        elements = elements / (size_t)n[plan->rank - 1] * (size_t)(n[plan->rank - 1] / 2 + 1);
    }
    return elements * (fast ? AREA_LEAST : AREA_MOST) * sim_shim_type_bits(side->type) / 8;
}

/* As documented: between real and complex elements, a last dimension of n elements has n / 2 + 1 on
 * the complex side; strides count only with an embedding. */
static struct sim_cufft_side side_of(const struct layout *layout, const struct layout *other,
                                     int rank, const long long *n)
{
    bool half = is_complex(layout->type) && !is_complex(other->type);
    struct sim_cufft_side side = {.type = layout->type, .stride = 1, .distance = 1};

    for (int i = 0; i < rank; i++) {
        side.extents[i] = half && i == rank - 1 ? n[i] / 2 + 1 : n[i];
        side.embed[i] = layout->embed == NULL ? side.extents[i] : layout->embed[i];
        side.distance *= side.extents[i];
    }
    if (layout->embed != NULL) {
        side.stride = layout->stride;
        side.distance = layout->distance;
    }
    return side;
}

static cufftResult check(int rank, const long long *n, long long batch, const struct layout *in,
                         const struct layout *out)
{
    if (rank < 1 || rank > SIM_CUFFT_MAX_RANK || n == NULL || batch < 1) {
        return CUFFT_INVALID_VALUE;
    }
    for (int i = 0; i < rank; i++) {
        if (n[i] < 1) {
            return CUFFT_INVALID_SIZE;
        }
    }
    return sim_shim_type_bits(in->type) == 0 || sim_shim_type_bits(out->type) == 0
               ? CUFFT_INVALID_TYPE
               : CUFFT_SUCCESS;
}

static cufftResult make(cufftHandle handle, int rank, const long long *n, long long batch,
                        const struct layout *in, const struct layout *out, size_t *ret_area_bytes)
{
    struct sim_cufft_plan *plan = sim_cufft_find(handle);
    cufftResult result = check(rank, n, batch, in, out);

    if (plan == NULL || plan->is_made) {
        return CUFFT_INVALID_PLAN;
    }
    if (result != CUFFT_SUCCESS) {
        return result;
    }
    plan->rank = rank;
    plan->batch = batch;
    plan->in = side_of(in, out, rank, n);
    plan->out = side_of(out, in, rank, n);
    plan->area_bytes = area_bytes(plan, n);
    if (plan->allocates) {
        if (sim_shim_alloc(plan->area_bytes, &plan->own_area) != CUDA_SUCCESS) {
            return CUFFT_ALLOC_FAILED;
        }
        plan->area = plan->own_area;
    }
    plan->is_made = true;
    if (ret_area_bytes != NULL) {
        *ret_area_bytes = plan->area_bytes;
    }
    return CUFFT_SUCCESS;
}

static bool types_of(cufftType type, cudaDataType *ret_in, cudaDataType *ret_out)
{
    switch ((int)type) {
#define TYPES(name, in, out)                                                                       \
    case name:                                                                                     \
        *ret_in = in;                                                                              \
        *ret_out = out;                                                                            \
        return true;
        TYPES(CUFFT_R2C, CUDA_R_32F, CUDA_C_32F)
        TYPES(CUFFT_C2R, CUDA_C_32F, CUDA_R_32F)
        TYPES(CUFFT_C2C, CUDA_C_32F, CUDA_C_32F)
        TYPES(CUFFT_D2Z, CUDA_R_64F, CUDA_C_64F)
        TYPES(CUFFT_Z2D, CUDA_C_64F, CUDA_R_64F)
        TYPES(CUFFT_Z2Z, CUDA_C_64F, CUDA_C_64F)
#undef TYPES
    default:
        return false;
    }
}

SIM_SHIM_EXPORT cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long int *n,
                                                long long int *inembed, long long int istride,
                                                long long int idist, cudaDataType inputtype,
                                                long long int *onembed, long long int ostride,
                                                long long int odist, cudaDataType outputtype,
                                                long long int batch, size_t *workSize,
                                                cudaDataType executiontype)
{
    return make(plan, rank, n, batch, &(struct layout){inembed, istride, idist, inputtype},
                &(struct layout){onembed, ostride, odist, outputtype}, workSize);
}

SIM_SHIM_EXPORT cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long int *n,
                                                long long int *inembed, long long int istride,
                                                long long int idist, long long int *onembed,
                                                long long int ostride, long long int odist,
                                                cufftType type, long long int batch,
                                                size_t *workSize)
{
    struct layout in = {inembed, istride, idist, CUDA_R_32F};
    struct layout out = {onembed, ostride, odist, CUDA_R_32F};

    return types_of(type, &in.type, &out.type) ? make(plan, rank, n, batch, &in, &out, workSize)
                                               : CUFFT_INVALID_TYPE;
}

static long long *widen(const int *values, int rank, long long *ret_values)
{
    for (int i = 0; values != NULL && i < rank && i < SIM_CUFFT_MAX_RANK; i++) {
        ret_values[i] = values[i];
    }
    return values == NULL ? NULL : ret_values;
}

SIM_SHIM_EXPORT cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *n, int *inembed,
                                              int istride, int idist, int *onembed, int ostride,
                                              int odist, cufftType type, int batch,
                                              size_t *workSize)
{
    long long sizes[SIM_CUFFT_MAX_RANK];
    long long in[SIM_CUFFT_MAX_RANK];
    long long out[SIM_CUFFT_MAX_RANK];

    return cufftMakePlanMany64(plan, rank, widen(n, rank, sizes), widen(inembed, rank, in), istride,
                               idist, widen(onembed, rank, out), ostride, odist, type, batch,
                               workSize);
}

SIM_SHIM_EXPORT cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch,
                                            size_t *workSize)
{
    return cufftMakePlanMany(plan, 1, &nx, NULL, 1, 0, NULL, 1, 0, type, batch, workSize);
}

SIM_SHIM_EXPORT cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type,
                                            size_t *workSize)
{
    return cufftMakePlanMany(plan, 2, (int[]){nx, ny}, NULL, 1, 0, NULL, 1, 0, type, 1, workSize);
}

SIM_SHIM_EXPORT cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz,
                                            cufftType type, size_t *workSize)
{
    return cufftMakePlanMany(plan, 3, (int[]){nx, ny, nz}, NULL, 1, 0, NULL, 1, 0, type, 1,
                             workSize);
}

SIM_SHIM_EXPORT cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inembed,
                                          int istride, int idist, int *onembed, int ostride,
                                          int odist, cufftType type, int batch)
{
    cufftHandle handle;
    cufftResult result = cufftCreate(&handle);

    if (result != CUFFT_SUCCESS) {
        return result;
    }
    result = cufftMakePlanMany(handle, rank, n, inembed, istride, idist, onembed, ostride, odist,
                               type, batch, NULL);
    if (result == CUFFT_SUCCESS) {
        *plan = handle;
    } else {
        (void)cufftDestroy(handle);
    }
    return result;
}

SIM_SHIM_EXPORT cufftResult cufftPlan1d(cufftHandle *plan, int nx, cufftType type, int batch)
{
    return cufftPlanMany(plan, 1, &nx, NULL, 1, 0, NULL, 1, 0, type, batch);
}

SIM_SHIM_EXPORT cufftResult cufftPlan2d(cufftHandle *plan, int nx, int ny, cufftType type)
{
    return cufftPlanMany(plan, 2, (int[]){nx, ny}, NULL, 1, 0, NULL, 1, 0, type, 1);
}

SIM_SHIM_EXPORT cufftResult cufftPlan3d(cufftHandle *plan, int nx, int ny, int nz, cufftType type)
{
    return cufftPlanMany(plan, 3, (int[]){nx, ny, nz}, NULL, 1, 0, NULL, 1, 0, type, 1);
}
