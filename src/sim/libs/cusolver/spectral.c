#include "sim/libs/cusolver/spectral.h"

cusolverStatus_t sim_cusolver_spectral_launch(const char *kernel,
                                              const struct sim_cusolver_spectral *problem)
{
    struct sim_cusolver_call call = {.handle = problem->handle};
    struct sim_shim_matrix values = {.data = problem->values,
                                     .element_bits = problem->value_bits,
                                     .rows = problem->value_count,
                                     .columns = 1,
                                     .ld = problem->value_count > 0 ? problem->value_count : 1,
                                     .stride = problem->value_stride,
                                     .batch = problem->a.batch};

    sim_cusolver_add_matrix(&call, &problem->a, true);
    sim_cusolver_add_matrix(&call, &values, true);
    sim_cusolver_add_matrix(&call, &problem->left, true);
    sim_cusolver_add_matrix(&call, &problem->right, true);
    sim_shim_add_write(&call.work, problem->area, problem->area_bytes);
    return sim_cusolver_launch(&call, kernel, problem->info, problem->a.batch);
}

int64_t sim_cusolver_symmetric_elements(int64_t order, bool vectors)
{
    return vectors ? 1 + 6 * order + 2 * order * order : 2 * order + 1;
}

int64_t sim_cusolver_singular_elements(int64_t rows, int64_t columns)
{
    int64_t least = rows < columns ? rows : columns;
    int64_t most = rows < columns ? columns : rows;
    int64_t chase = 3 * least + most;

    chase = chase > 5 * least ? chase : 5 * least;
    return chase + SIM_CUSOLVER_BLOCK * (rows + columns);
}

/* The functions for any element type. */
static struct sim_cusolver_spectral symmetric(cusolverDnHandle_t handle, int64_t n,
                                              cudaDataType type, void *a, int64_t lda,
                                              cudaDataType value_type, void *values, int64_t batch)
{
    return (struct sim_cusolver_spectral){
        .handle = handle,
        .a = {a, sim_shim_type_bits(type), n, n, lda, lda * n, batch},
        .values = values,
        .value_bits = sim_shim_type_bits(value_type),
        .value_count = n,
        .value_stride = n,
    };
}

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnXsyevd_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
    cublasFillMode_t uplo, int64_t n, cudaDataType dataTypeA, const void *A, int64_t lda,
    cudaDataType dataTypeW, const void *W, cudaDataType computeType,
    size_t *workspaceInBytesOnDevice, size_t *workspaceInBytesOnHost)
{
    return sim_cusolver_workspace_bytes(
        handle, sim_cusolver_symmetric_elements(n, jobz == CUSOLVER_EIG_MODE_VECTOR), dataTypeA,
        workspaceInBytesOnDevice, workspaceInBytesOnHost);
}

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnXsyevd(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
    cublasFillMode_t uplo, int64_t n, cudaDataType dataTypeA, void *A, int64_t lda,
    cudaDataType dataTypeW, void *W, cudaDataType computeType, void *bufferOnDevice,
    size_t workspaceInBytesOnDevice, void *bufferOnHost, size_t workspaceInBytesOnHost, int *info)
{
    struct sim_cusolver_spectral problem = symmetric(handle, n, dataTypeA, A, lda, dataTypeW, W, 1);

    problem.area = bufferOnDevice;
    problem.area_bytes = workspaceInBytesOnDevice;
    problem.info = info;
    return sim_cusolver_spectral_launch("syevd", &problem);
}

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnXsyevBatched_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
    cublasFillMode_t uplo, int64_t n, cudaDataType dataTypeA, const void *A, int64_t lda,
    cudaDataType dataTypeW, const void *W, cudaDataType computeType,
    size_t *workspaceInBytesOnDevice, size_t *workspaceInBytesOnHost, int64_t batchSize)
{
    return sim_cusolver_workspace_bytes(
        handle, batchSize * sim_cusolver_symmetric_elements(n, jobz == CUSOLVER_EIG_MODE_VECTOR),
        dataTypeA, workspaceInBytesOnDevice, workspaceInBytesOnHost);
}

SIM_SHIM_EXPORT cusolverStatus_t
cusolverDnXsyevBatched(cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
                       cublasFillMode_t uplo, int64_t n, cudaDataType dataTypeA, void *A,
                       int64_t lda, cudaDataType dataTypeW, void *W, cudaDataType computeType,
                       void *bufferOnDevice, size_t workspaceInBytesOnDevice, void *bufferOnHost,
                       size_t workspaceInBytesOnHost, int *info, int64_t batchSize)
{
    struct sim_cusolver_spectral problem =
        symmetric(handle, n, dataTypeA, A, lda, dataTypeW, W, batchSize);

    problem.area = bufferOnDevice;
    problem.area_bytes = workspaceInBytesOnDevice;
    problem.info = info;
    return sim_cusolver_spectral_launch("syev_batched", &problem);
}

/* LAPACK's xGEEV needs four times the order, and room for blocks. */
static int64_t general_elements(int64_t order)
{
    return (4 + SIM_CUSOLVER_BLOCK) * order;
}

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnXgeev_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobvl,
    cusolverEigMode_t jobvr, int64_t n, cudaDataType dataTypeA, const void *A, int64_t lda,
    cudaDataType dataTypeW, const void *W, cudaDataType dataTypeVL, const void *VL, int64_t ldvl,
    cudaDataType dataTypeVR, const void *VR, int64_t ldvr, cudaDataType computeType,
    size_t *workspaceInBytesOnDevice, size_t *workspaceInBytesOnHost)
{
    return sim_cusolver_workspace_bytes(handle, general_elements(n), dataTypeA,
                                        workspaceInBytesOnDevice, workspaceInBytesOnHost);
}

SIM_SHIM_EXPORT cusolverStatus_t cusolverDnXgeev(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobvl,
    cusolverEigMode_t jobvr, int64_t n, cudaDataType dataTypeA, void *A, int64_t lda,
    cudaDataType dataTypeW, void *W, cudaDataType dataTypeVL, void *VL, int64_t ldvl,
    cudaDataType dataTypeVR, void *VR, int64_t ldvr, cudaDataType computeType, void *bufferOnDevice,
    size_t workspaceInBytesOnDevice, void *bufferOnHost, size_t workspaceInBytesOnHost, int *info)
{
    struct sim_cusolver_spectral problem = symmetric(handle, n, dataTypeA, A, lda, dataTypeW, W, 1);
    bool left = jobvl == CUSOLVER_EIG_MODE_VECTOR;
    bool right = jobvr == CUSOLVER_EIG_MODE_VECTOR;

    problem.left = (struct sim_shim_matrix){
        left ? VL : NULL, sim_shim_type_bits(dataTypeVL), n, n, ldvl, 0, 1};
    problem.right = (struct sim_shim_matrix){
        right ? VR : NULL, sim_shim_type_bits(dataTypeVR), n, n, ldvr, 0, 1};
    problem.area = bufferOnDevice;
    problem.area_bytes = workspaceInBytesOnDevice;
    problem.info = info;
    return sim_cusolver_spectral_launch("geev", &problem);
}
