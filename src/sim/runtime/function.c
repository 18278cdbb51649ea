/* Kernels: handles and attributes. */
#include <stddef.h>
#include <string.h>

#include "sim/runtime/entry.h"
#include "sim/runtime/library.h"

SIMRT_API(cudaGetFuncBySymbol, SIMRT_CONTEXT, (cudaFunction_t * ret_function, const void *symbol))
{
    if (ret_function == NULL) {
        return cudaErrorInvalidValue;
    }
    return simrt_function_find(symbol, ret_function);
}

/* An attribute; 0 if the driver does not know it. */
static int attribute_or_zero(CUfunction function, CUfunction_attribute attribute)
{
    int value = 0;
    CUresult result = simrt_driver.cuFuncGetAttribute(&value, attribute, function);

    return result == CUDA_SUCCESS ? value : 0;
}

SIMRT_API(cudaFuncGetAttributes, SIMRT_CONTEXT,
          (struct cudaFuncAttributes * ret_attributes, const void *kernel))
{
    CUfunction function;

    if (ret_attributes == NULL) {
        return cudaErrorInvalidValue;
    }
    cudaError_t error = simrt_function_find(kernel, &function);
    if (error != cudaSuccess) {
        return error;
    }
    memset(ret_attributes, 0, sizeof(*ret_attributes));
#define ATTRIBUTE(field, attribute)                                                                \
    ret_attributes->field = attribute_or_zero(function, CU_FUNC_ATTRIBUTE_##attribute)
    ATTRIBUTE(sharedSizeBytes, SHARED_SIZE_BYTES);
    ATTRIBUTE(constSizeBytes, CONST_SIZE_BYTES);
    ATTRIBUTE(localSizeBytes, LOCAL_SIZE_BYTES);
    ATTRIBUTE(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
    ATTRIBUTE(numRegs, NUM_REGS);
    ATTRIBUTE(ptxVersion, PTX_VERSION);
    ATTRIBUTE(binaryVersion, BINARY_VERSION);
    ATTRIBUTE(cacheModeCA, CACHE_MODE_CA);
    ATTRIBUTE(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES);
    ATTRIBUTE(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT);
    ATTRIBUTE(clusterDimMustBeSet, CLUSTER_SIZE_MUST_BE_SET);
    ATTRIBUTE(requiredClusterWidth, REQUIRED_CLUSTER_WIDTH);
    ATTRIBUTE(requiredClusterHeight, REQUIRED_CLUSTER_HEIGHT);
    ATTRIBUTE(requiredClusterDepth, REQUIRED_CLUSTER_DEPTH);
    ATTRIBUTE(clusterSchedulingPolicyPreference, CLUSTER_SCHEDULING_POLICY_PREFERENCE);
    ATTRIBUTE(nonPortableClusterSizeAllowed, NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
#undef ATTRIBUTE
    return cudaSuccess;
}
