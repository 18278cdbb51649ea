#include "sim/driver/core/budget.h"

#include <unistd.h>

#include "sim/driver/core/run_record.h"
#include "sim/driver/core/sim_options.h"

static size_t host_used_bytes;

CUresult sim_budget_charge(struct sim_device *device, size_t bytes, enum sim_use use)
{
    size_t free_bytes = device->total_bytes - device->used_bytes;

    if (bytes > free_bytes) {
        sim_run_record_lacked(device, bytes, bytes - free_bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    device->used_bytes += bytes;
    sim_run_record_used(device, use == SIM_USE_OWN ? (int64_t)bytes : 0);
    return CUDA_SUCCESS;
}

void sim_budget_refund(struct sim_device *device, size_t bytes, enum sim_use use)
{
    device->used_bytes -= bytes;
    sim_run_record_used(device, use == SIM_USE_OWN ? -(int64_t)bytes : 0);
}

/* Host memory that may be locked. */
static size_t host_total_bytes(void)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    return spw_option_bytes(&sim_options()->host_memory, machine);
}

CUresult sim_host_budget_charge(size_t bytes)
{
    size_t free_bytes = host_total_bytes() - host_used_bytes;

    if (bytes > free_bytes) {
        sim_run_record_lacked(NULL, bytes, bytes - free_bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    host_used_bytes += bytes;
    return CUDA_SUCCESS;
}

void sim_host_budget_refund(size_t bytes)
{
    host_used_bytes -= bytes;
}
