/* The base of the simulated driver: options, devices, contexts, handles, the lock, the call log. It
 * does not know any other folder of the driver.
 *
 *   budget          the used memory of each device
 *   calls           counts and logs calls, and injects failures
 *   clock           the virtual clock
 *   connection      facts for the simulated libraries: ranks, communicators, engines
 *   context         contexts, and the stack of contexts of each thread
 *   control         the functions that the driver exports in addition to CUDA's
 *   device          the devices and their state
 *   errors          error codes by number and by name
 *   export          marks exported functions
 *   gen_functions   writes the list of the driver's functions from NVIDIA's headers
 *   handle_table    handles of objects, checked and recycled
 *   heap            allocates address ranges from segments
 *   lock            the driver's only mutex, and waits that release it
 *   machine         the end of a machine that is out of memory
 *   neighbours      the other processes that share the devices
 *   rangemap        a sorted map of address ranges
 *   run_record      writes the record that the launcher reads
 *   say             messages to the user on stderr
 *   sim_options     the options of the simulated driver
 *   spin            detects a program that waits forever for a result
 *   tables          tables that gen_functions writes
 *   visible         CUDA_VISIBLE_DEVICES
 *
 * Memory is charged to a device through budget.h.
 *
 * Locking: the simulator's lock (core/lock.h) is held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <cuda.h>

#include "gpu/profile.h"

/* The driver's minimum allocation granularity. cuda.h does not define it:
 * cuMemGetAllocationGranularity reports it. Current GPUs report 2 MiB. */
#define SIM_GRANULE ((size_t)2 << 20)

struct sim_device {
    int ordinal; /* the device's number in this process (CUDA_VISIBLE_DEVICES) */
    int index;   /* the device's number on the machine */
    const struct spw_gpu_profile *profile;
    struct spw_gpu_sharing sharing;
    size_t total_bytes;    /* as cuMemGetInfo and cuDeviceTotalMem report it */
    size_t used_bytes;     /* charged so far; free = total - used */
    size_t own_bytes;      /* charged as SIM_USE_OWN; used_bytes contains only the part beyond the
                            * overhead */
    size_t host_bytes;     /* one memory: what the host's side of this process took of it, when it
                            * was last read */
    size_t overhead_bytes; /* SPILLWAY_SIM_OVERHEAD: charged while there is a context */
    unsigned int contexts;
    CUcontext primary; /* NULL before the first retain, then always the same */
    unsigned int primary_refs;
    unsigned int primary_flags; /* cuDevicePrimaryCtxSetFlags; survives the context */
    CUmemoryPool default_pool;  /* created at the first use, never destroyed */
    CUmemoryPool current_pool;  /* cuDeviceSetMemPool; NULL: the default pool */
};

/* The number of devices that the process sees: SPILLWAY_SIM_DEVICES, less the devices that
 * CUDA_VISIBLE_DEVICES hides. The variable is read at the first call. */
int sim_device_count(void);

/* The device of an ordinal, or NULL if there is none. */
struct sim_device *sim_device_get(CUdevice ordinal);

/* The device of that index on the machine, or NULL if the process does not see it. */
struct sim_device *sim_device_of_index(int index);

/* True if kernels of `device` may be given access to memory of `owner`. */
bool sim_device_can_access(const struct sim_device *device, const struct sim_device *owner);

/* The PCI bus that the device is on; domain and device number are 0. The numbers are arbitrary but
 * always the same. */
int sim_device_pci_bus(const struct sim_device *device);
