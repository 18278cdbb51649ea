#include "sim/driver/core/budget.h"

#include <unistd.h>

#include "sim/driver/core/neighbours.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/core/sim_options.h"

static size_t host_used_bytes;

/* The part of the driver's own use that the overhead does not contain. */
static size_t beyond_overhead(const struct sim_device *device, size_t own_bytes)
{
    return own_bytes > device->overhead_bytes ? own_bytes - device->overhead_bytes : 0;
}

size_t sim_budget_free(const struct sim_device *device)
{
    size_t mine = device->total_bytes - device->used_bytes;
    uint64_t others = sim_neighbours_used(device->index);

    return others < mine ? mine - others : 0;
}

static CUresult take(struct sim_device *device, size_t bytes)
{
    uint64_t free_bytes;

    if (!sim_neighbours_grow(device->index, device->total_bytes, device->used_bytes, bytes,
                             &free_bytes)) {
        sim_run_record_lacked(device, bytes, bytes - free_bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    device->used_bytes += bytes;
    return CUDA_SUCCESS;
}

static void give(struct sim_device *device, size_t bytes)
{
    device->used_bytes -= bytes;
    sim_neighbours_shrink(device->index, device->used_bytes);
}

CUresult sim_budget_charge(struct sim_device *device, size_t bytes, enum sim_use use)
{
    size_t own_bytes = device->own_bytes + (use == SIM_USE_OWN ? bytes : 0);
    CUresult result =
        take(device, use == SIM_USE_OWN ? beyond_overhead(device, own_bytes) -
                                              beyond_overhead(device, device->own_bytes)
                                        : bytes);

    if (result == CUDA_SUCCESS) {
        sim_run_record_used(device, (int64_t)(own_bytes - device->own_bytes));
        device->own_bytes = own_bytes;
    }
    return result;
}

void sim_budget_refund(struct sim_device *device, size_t bytes, enum sim_use use)
{
    if (use == SIM_USE_OWN) {
        size_t before = beyond_overhead(device, device->own_bytes);

        device->own_bytes -= bytes;
        give(device, before - beyond_overhead(device, device->own_bytes));
        sim_run_record_used(device, -(int64_t)bytes);
    } else {
        give(device, bytes);
        sim_run_record_used(device, 0);
    }
}

CUresult sim_budget_open_context(struct sim_device *device)
{
    size_t bytes = (size_t)spw_gpu_profile_overhead(device->profile).mib << 20;
    CUresult result = CUDA_SUCCESS;

    if (sim_options()->overhead && device->contexts == 0) {
        result = take(device, bytes);
        if (result == CUDA_SUCCESS) {
            device->overhead_bytes = bytes;
            sim_run_record_overhead(device, bytes);
        }
    }
    device->contexts += result == CUDA_SUCCESS;
    return result;
}

void sim_budget_close_context(struct sim_device *device)
{
    if (--device->contexts == 0) {
        size_t kept = beyond_overhead(device, device->own_bytes);

        device->used_bytes += device->own_bytes - kept;
        give(device, device->overhead_bytes);
        device->overhead_bytes = 0;
        sim_run_record_used(device, 0);
    }
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
