#include "sim/driver/core/budget.h"

#include <time.h>
#include <unistd.h>

#include "sim/driver/core/control.h"
#include "sim/driver/core/export.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/core/machine.h"
#include "sim/driver/core/neighbours.h"
#include "sim/driver/core/run_record.h"
#include "sim/driver/core/sim_options.h"
#include "system/pid.h"

static size_t host_used_bytes;

/* The part of the driver's own use that the overhead does not contain. */
static size_t beyond_overhead(const struct sim_device *device, size_t own_bytes)
{
    return own_bytes > device->overhead_bytes ? own_bytes - device->overhead_bytes : 0;
}

/* What this process holds of the device's memory. */
static size_t held_bytes(const struct sim_device *device)
{
    return device->used_bytes + device->host_bytes;
}

/* Reads the memory of the host's side of the process. The content of simulated memory is in shared
 * memory, so it does not count. If the device has no memory of its own, the host's side counts, and
 * the machine dies if it is too much. Page-locked memory is anonymous memory on other machines. */
static void look(struct sim_device *device)
{
    size_t anonymous = spw_pid_anonymous_bytes();
    uint64_t all;

    if (!device->sharing.one_memory) {
        sim_run_record_together(device, anonymous > host_used_bytes ? anonymous : host_used_bytes);
        return;
    }
    device->host_bytes = anonymous + host_used_bytes;
    sim_run_record_together(device, device->host_bytes);
    if (sim_neighbours_died(device->index)) {
        sim_machine_die(device, 0);
    }
    sim_neighbours_hold(device->index, held_bytes(device));
    all = held_bytes(device) + sim_neighbours_used(device->index);
    if (all > device->total_bytes) {
        sim_machine_die(device, all);
    }
}

/* Returns true at most every 20 ms, because /proc is slow on some systems. */
static bool is_due(void)
{
    enum { MILLION = 1000000, PAUSE_MS = 20 };
    static int64_t next_ms;
    struct timespec now;
    int64_t now_ms;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    now_ms = now.tv_sec * (int64_t)1000 + now.tv_nsec / MILLION;
    if (now_ms < next_ms) {
        return false;
    }
    next_ms = now_ms + PAUSE_MS;
    return true;
}

void sim_budget_look_sometimes(void)
{
    if (is_due()) {
        sim_budget_look();
    }
}

void sim_budget_look(void)
{
    for (int i = 0; i < sim_device_count(); i++) {
        struct sim_device *device = sim_device_get(i);

        if (device->contexts > 0) {
            look(device);
        }
    }
}

size_t sim_budget_free(const struct sim_device *device)
{
    size_t mine = device->total_bytes - held_bytes(device);
    uint64_t others = sim_neighbours_used(device->index);

    return others < mine ? mine - others : 0;
}

static CUresult take(struct sim_device *device, size_t bytes)
{
    uint64_t free_bytes;

    if (device->sharing.one_memory || is_due()) {
        look(device);
    }
    if (!sim_neighbours_grow(device->index, device->total_bytes, held_bytes(device), bytes,
                             &free_bytes)) {
        if (device->sharing.one_memory && bytes <= device->total_bytes) {
            sim_machine_die(device, device->total_bytes - free_bytes + bytes);
        }
        sim_run_record_lacked(device, bytes, bytes - free_bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    device->used_bytes += bytes;
    return CUDA_SUCCESS;
}

static void give(struct sim_device *device, size_t bytes)
{
    device->used_bytes -= bytes;
    sim_neighbours_hold(device->index, held_bytes(device));
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

/* Host memory that may be locked. If devices have no memory of their own, all of it may be, unless
 * the user sets a limit. */
static size_t host_total_bytes(void)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    const struct sim_device *device = sim_device_get(0);

    if (device != NULL && device->sharing.one_memory && !sim_options()->host_memory.set) {
        return device->total_bytes;
    }

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
    sim_budget_look();
    return CUDA_SUCCESS;
}

void sim_host_budget_refund(size_t bytes)
{
    host_used_bytes -= bytes;
}

SIM_EXPORT unsigned long long spillway_sim_one_memory(int ordinal,
                                                      unsigned long long *ret_available)
{
    struct sim_device *device;
    size_t total = 0;

    sim_lock();
    device = sim_device_get(ordinal);
    if (device != NULL && device->sharing.one_memory) {
        look(device);
        total = device->total_bytes;
        *ret_available = sim_budget_free(device);
    }
    sim_unlock();
    return total;
}
