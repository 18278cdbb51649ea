#include "device/access.h"

#include "device/device.h"
#include "system/lock.h"

#include <stdlib.h>

/* A context that may access the memory of another context. */
struct spw_enabled_peer {
    struct spw_enabled_peer *next;
    CUcontext context, peer;
    int accessor, owner; /* ordinals of the two devices */
};

/* Returns the access that a device must have. The callers of wanted, apply, take and put hold the
 * lock. */
static CUmemAccess_flags wanted(const struct spw_device *device, int accessor)
{
    for (const struct spw_enabled_peer *enabled = spw_devices.enabled_peers; enabled != NULL;
         enabled = enabled->next) {
        if (enabled->owner == device->ordinal && enabled->accessor == accessor) {
            return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        }
    }
    return (CUmemAccess_flags)device->pool_access[accessor];
}

/* Gives a device the access that it must have. */
static CUresult apply(struct spw_device *device, int accessor)
{
    CUmemAccess_flags access = wanted(device, accessor);
    enum spw_err err = SPW_OK;

    if (access != (CUmemAccess_flags)atomic_load(&device->access[accessor])) {
        err = spw_device_grant(device, accessor, access);
    }
    return (CUresult)spw_err_to_driver(err);
}

CUresult spw_device_access_set(struct spw_device *device, int accessor, CUmemAccess_flags access)
{
    CUresult result;
    uint8_t before;

    spw_lock(&spw_locks.process);
    before = device->pool_access[accessor];
    device->pool_access[accessor] = (uint8_t)access;
    result = apply(device, accessor);
    if (result != CUDA_SUCCESS) {
        device->pool_access[accessor] = before;
    }
    spw_unlock(&spw_locks.process);
    return result;
}

/* Removes a record from the list. Returns NULL if there is no such record. */
static struct spw_enabled_peer *take(CUcontext peer, CUcontext context)
{
    struct spw_enabled_peer **link = &spw_devices.enabled_peers, *found;

    while (*link != NULL && ((*link)->peer != peer || (*link)->context != context)) {
        link = &(*link)->next;
    }
    found = *link;
    if (found != NULL) {
        *link = found->next;
    }
    return found;
}

static void put(struct spw_enabled_peer *enabled)
{
    enabled->next = spw_devices.enabled_peers;
    spw_devices.enabled_peers = enabled;
}

CUresult spw_device_access_enable(struct spw_device *device, CUcontext peer, int accessor,
                                  CUcontext context)
{
    struct spw_enabled_peer *enabled = malloc(sizeof(*enabled));
    CUresult result;

    if (enabled == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *enabled = (struct spw_enabled_peer){
        .context = context, .peer = peer, .accessor = accessor, .owner = device->ordinal};
    spw_lock(&spw_locks.process);
    put(enabled);
    result = apply(device, accessor);
    if (result != CUDA_SUCCESS) {
        free(take(peer, context));
    }
    spw_unlock(&spw_locks.process);
    return result;
}

CUresult spw_device_access_disable(struct spw_device *device, CUcontext peer, int accessor,
                                   CUcontext context)
{
    struct spw_enabled_peer *enabled;
    CUresult result;

    spw_lock(&spw_locks.process);
    enabled = take(peer, context);
    result = apply(device, accessor);
    if (result != CUDA_SUCCESS && enabled != NULL) {
        put(enabled);
        enabled = NULL;
    }
    spw_unlock(&spw_locks.process);
    free(enabled);
    return result;
}

void spw_device_access_forget_context(CUcontext context)
{
    struct spw_enabled_peer **link = &spw_devices.enabled_peers, *enabled;

    spw_lock(&spw_locks.process);
    while ((enabled = *link) != NULL) {
        if (enabled->context == context || enabled->peer == context) {
            *link = enabled->next;
            free(enabled);
        } else {
            link = &enabled->next;
        }
    }
    spw_unlock(&spw_locks.process);
}

void spw_device_access_reset(void)
{
    struct spw_enabled_peer *enabled;

    while ((enabled = spw_devices.enabled_peers) != NULL) {
        spw_devices.enabled_peers = enabled->next;
        free(enabled);
    }
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_device *device = spw_device_at(i);

        for (int accessor = 0; accessor < SPW_DEVICES_MAX; accessor++) {
            device->pool_access[accessor] = 0;
            atomic_store(&device->access[accessor], 0);
        }
    }
}
