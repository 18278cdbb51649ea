/* Dropout descriptors, which recurrent networks use. */
#include <stdlib.h>

#include "sim/libs/common/driver.h"
#include "sim/libs/cudnn/handle.h"

/* An estimate, because cuDNN does not document the size: one state of cuRAND's default generator
 * (struct curandStateXORWOW) for each thread that the device can run at once. */
#define STATE_BYTES 48

struct cudnnDropoutStruct {
    float probability;
    void *states; /* the caller's */
    unsigned long long seed;
};

static size_t states_bytes(void)
{
    const struct sim_shim_driver *driver = sim_shim_driver();
    CUdevice device;
    int units = 0;
    int threads = 0;

    if (driver != NULL && driver->cuCtxGetDevice(&device) == CUDA_SUCCESS) {
        (void)driver->cuDeviceGetAttribute(&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                           device);
        (void)driver->cuDeviceGetAttribute(
            &threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
    }
    return (size_t)units * (size_t)threads * STATE_BYTES;
}

SIM_CUDNN_DESCRIPTOR(Dropout)

SIM_SHIM_EXPORT cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *sizeInBytes)
{
    if (handle == NULL || sizeInBytes == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    *sizeInBytes = states_bytes();
    return CUDNN_STATUS_SUCCESS;
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
                                                            cudnnHandle_t handle, float dropout,
                                                            void *states, size_t stateSizeInBytes,
                                                            unsigned long long seed)
{
    if (dropoutDesc == NULL || handle == NULL || dropout < 0.0F || dropout > 1.0F ||
        (states != NULL && stateSizeInBytes < states_bytes())) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    *dropoutDesc = (struct cudnnDropoutStruct){dropout, states, seed};
    return CUDNN_STATUS_SUCCESS;
}

/* Unlike cudnnRestoreDropoutDescriptor(), this seeds the states. */
SIM_SHIM_EXPORT cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
                                                        cudnnHandle_t handle, float dropout,
                                                        void *states, size_t stateSizeInBytes,
                                                        unsigned long long seed)
{
    struct sim_shim_work work = {.count = 0};
    cudnnStatus_t status =
        cudnnRestoreDropoutDescriptor(dropoutDesc, handle, dropout, states, stateSizeInBytes, seed);

    if (status != CUDNN_STATUS_SUCCESS || states == NULL) {
        return status;
    }
    sim_shim_add_write(&work, states, states_bytes());
    return sim_cudnn_launch(handle, "dropout_seed", &work);
}

SIM_SHIM_EXPORT cudnnStatus_t cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
                                                        cudnnHandle_t handle, float *dropout,
                                                        void **states, unsigned long long *seed)
{
    if (dropoutDesc == NULL) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    *dropout = dropoutDesc->probability;
    *states = dropoutDesc->states;
    *seed = dropoutDesc->seed;
    return CUDNN_STATUS_SUCCESS;
}
