#include "serve/vmm.h"

#include "serve/account.h"
#include "serve/decision.h"
#include "track/device.h"
#include "intercept/entry.h"
#include "common/map.h"
#include "track/site.h"
#include "track/spill.h"
#include "track/stream.h"

#include <pthread.h>
#include <stdlib.h>

/* One cuMemCreate of the program. */
struct piece {
    uint64_t bytes;
    int ordinal; /* of the device that is charged, or whose pinned memory it counts as */
    bool host;
    bool spilled;        /* to the host, though asked of the device */
    bool tallied_host;   /* so says the tally of its rule */
    uint8_t rule;        /* of a policy that decided on it; 0: none */
    uint32_t site;       /* who is charged */
    unsigned references; /* handles not released yet */
    unsigned mappings;
};

/* Where a piece is mapped. */
struct mapping {
    struct piece *piece;
    uint64_t address;
    uint64_t bytes;
};

static struct {
    pthread_mutex_t lock;
    struct spw_map pieces;   /* by handle */
    struct spw_map mappings; /* by address */
} tables = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- what is charged ---- */

static enum spw_err charge(const struct piece *piece)
{
    struct spw_device *device = &spw_process.devices[piece->ordinal];
    struct spw_pool *pool;

    if (piece->host) {
        spw_counter_add(&device->counters->pinned_bytes, piece->bytes);
        return SPW_OK;
    }
    pool = spw_track_device_pool(device);
    return pool == NULL ? SPW_E_UNSUPPORTED : spw_pool_charge(pool, piece->bytes, piece->site);
}

static void discharge(const struct piece *piece)
{
    struct spw_device *device = &spw_process.devices[piece->ordinal];
    struct spw_pool *pool;

    if (piece->host) {
        spw_counter_add(&device->counters->pinned_bytes, -piece->bytes);
        return;
    }
    pool = spw_track_device_opened(device);
    if (pool != NULL) {
        spw_pool_account_remove(pool, piece->rule, piece->bytes, piece->tallied_host);
        (piece->spilled ? spw_pool_discharge_host : spw_pool_discharge)(pool, piece->bytes,
                                                                        piece->site);
    }
}

/* Called when a reference or a mapping of the piece has gone, without the lock. */
static void bury(struct piece *piece)
{
    discharge(piece);
    free(piece);
}

/* ---- handles ---- */

/* Which device a cuMemCreate is for; NULL when it is none of the visible ones. */
static struct spw_device *device_for(const CUmemAllocationProp *prop, bool *ret_host)
{
    const struct spw_stream_info *here;

    *ret_host = prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    if (!*ret_host) {
        return spw_track_device_of(prop->location.id);
    }
    here = spw_track_stream_current();
    return here == NULL ? &spw_process.devices[0] : &spw_process.devices[here->ordinal];
}

static bool enter(CUmemGenericAllocationHandle handle, struct piece *piece)
{
    bool done;

    pthread_mutex_lock(&tables.lock);
    done =
        spw_map_get(&tables.pieces, handle) == NULL && spw_map_put(&tables.pieces, handle, piece);
    pthread_mutex_unlock(&tables.lock);
    return done;
}

/* Charges a piece that has no room on its device to the host, where *prop says it is to be created.
 */
static enum spw_err charge_host(struct spw_device *device, struct piece *piece, enum spw_err err,
                                CUmemAllocationProp *prop)
{
    int node;

    if (piece->host || piece->spilled ||
        spw_track_spill_charge(device, piece->bytes, piece->site, err, &node) != SPW_OK) {
        return err;
    }
    piece->spilled = true;
    prop->location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    prop->location.id = node;
    prop->allocFlags.gpuDirectRDMACapable = 0;
    prop->allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE;
    return SPW_OK;
}

/* ---- by a policy ---- */

/* Enters a piece in the tally of its rule; past the limit, as the rule says. */
static enum spw_err tally(struct spw_device *device, struct spw_pool *pool, struct piece *piece,
                          struct spw_decision *decision)
{
    enum spw_err err =
        spw_pool_account_add(pool, &decision->wish, piece->bytes, decision->wish.on_host);

    if (err == SPW_E_QUOTA) {
        if (!spw_serve_decision_beyond(device, decision, piece->bytes)) {
            return err;
        }
        err = spw_pool_account_add(pool, &decision->wish, piece->bytes, decision->wish.on_host);
    }
    piece->rule = decision->wish.account;
    piece->tallied_host = decision->wish.on_host;
    return err;
}

/* Charges a piece to where a rule wishes it. What belongs to the program cannot be cut: it is on
 * one tier. */
static enum spw_err charge_by_rule(struct spw_device *device, struct piece *piece,
                                   struct spw_decision *decision, CUmemAllocationProp *prop)
{
    struct spw_pool *pool = spw_track_device_pool(device);
    enum spw_err err;

    if (pool == NULL) {
        return SPW_E_UNSUPPORTED;
    }
    err = tally(device, pool, piece, decision);
    if (err != SPW_OK) {
        return err;
    }
    if (decision->wish.host_permille > 0 || decision->wish.lazy) {
        spw_serve_decision_unmet(device, decision->rule,
                                 "memory of the program's own is on one tier");
    }
    if (decision->wish.on_host) {
        if (charge_host(device, piece, SPW_E_LIMIT, prop) == SPW_OK) {
            return SPW_OK;
        }
        spw_serve_decision_unmet(device, decision->rule, "the host has no room for it");
        spw_pool_account_to_device(pool, piece->rule, piece->bytes);
        piece->tallied_host = false;
    }
    err = charge(piece);
    if (err == SPW_E_LIMIT && decision->wish.on_device) {
        spw_serve_decision_unmet(device, decision->rule, "the device has no more room for it");
    }
    return err;
}

/* Charges a piece to the device or, where that has no room, to the host. */
static enum spw_err charge_somewhere(struct spw_device *device, struct piece *piece,
                                     CUmemAllocationProp *prop)
{
    struct spw_decision decision;
    enum spw_err err;

    if (SPW_UNLIKELY(atomic_load_explicit(&spw_serve_policy, memory_order_acquire) != NULL) &&
        !piece->host && spw_process.mode != SPW_MODE_OBSERVE &&
        spw_serve_decision_make(device, piece->bytes, piece->site, "cuMemCreate", &decision)) {
        err = charge_by_rule(device, piece, &decision, prop);
    } else {
        err = charge(piece);
    }
    return err == SPW_E_LIMIT ? charge_host(device, piece, err, prop) : err;
}

/* What became of a piece that could not be charged. */
static void forget(struct piece *piece)
{
    struct spw_pool *pool = spw_track_device_opened(&spw_process.devices[piece->ordinal]);

    if (pool != NULL) {
        spw_pool_account_remove(pool, piece->rule, piece->bytes, piece->tallied_host);
    }
    free(piece);
}

/* Creates a piece that was charged; when the device is full after all, on the host. */
static CUresult create(struct spw_device *device, struct piece *piece,
                       CUmemGenericAllocationHandle *handle, CUmemAllocationProp *prop,
                       unsigned long long flags)
{
    struct spw_driver *driver = spw_track_driver();
    struct piece refused = *piece;
    CUresult result;

    refused.rule = 0; /* its tally goes on with the piece */
    SPW_FORWARD(result, driver->cuMemCreate(handle, piece->bytes, prop, flags));
    if (result == CUDA_ERROR_OUT_OF_MEMORY &&
        charge_host(device, piece, SPW_E_NO_MEMORY, prop) == SPW_OK) {
        discharge(&refused);
        result = driver->cuMemCreate(handle, piece->bytes, prop, flags);
    }
    return result;
}

/* The real driver answered for a piece that was charged. */
static CUresult settle(struct piece *piece, const CUmemGenericAllocationHandle *handle,
                       CUresult result)
{
    struct spw_device *device = piece->host ? NULL : &spw_process.devices[piece->ordinal];
    uint64_t bytes = piece->bytes;
    uint32_t site = piece->site;

    if (result != CUDA_SUCCESS || !enter(*handle, piece)) {
        bury(piece);
    } else if (device != NULL) {
        spw_counter_add(&device->counters->vmm_creates, 1);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY && device != NULL) {
        (void)spw_serve_account_oom(device, spw_track_device_pool(device), "cuMemCreate", bytes,
                                    site, SPW_E_NO_MEMORY);
    }
    return result;
}

CUresult spw_serve_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                               const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct spw_driver *driver = spw_track_driver();
    struct spw_device *device = NULL;
    CUmemAllocationProp placed;
    struct piece *piece = NULL;
    CUresult result;
    bool host;

    if (handle != NULL && prop != NULL && size > 0 && spw_process.device_count > 0) {
        device = device_for(prop, &host);
        piece = device == NULL ? NULL : malloc(sizeof(*piece));
    }
    if (piece != NULL) {
        enum spw_err err;

        placed = *prop;
        *piece = (struct piece){size, device->ordinal, host,
                                .site = host ? 0 : spw_track_site("cuMemCreate"), .references = 1};
        err = charge_somewhere(device, piece, &placed);
        if (err == SPW_E_LIMIT || err == SPW_E_QUOTA) {
            uint32_t site = piece->site;

            forget(piece);
            return spw_serve_account_oom(device, spw_track_device_pool(device), "cuMemCreate", size,
                                         site, err);
        }
        if (err != SPW_OK) {
            forget(piece);
            piece = NULL;
        }
    }
    if (piece == NULL) {
        SPW_FORWARD(result, driver->cuMemCreate(handle, size, prop, flags));
        return result;
    }
    return settle(piece, handle, create(device, piece, handle, &placed, flags));
}

/* Gives up one reference of a handle. Before the real call, which may hand the same number to
 * another thread; NULL when the handle is not known. */
static struct piece *drop_reference(CUmemGenericAllocationHandle handle)
{
    struct piece *piece;

    pthread_mutex_lock(&tables.lock);
    piece = spw_map_get(&tables.pieces, handle);
    if (piece != NULL && --piece->references == 0) {
        (void)spw_map_take(&tables.pieces, handle);
    }
    pthread_mutex_unlock(&tables.lock);
    return piece;
}

static void add_reference(CUmemGenericAllocationHandle handle, struct piece *piece)
{
    pthread_mutex_lock(&tables.lock);
    if (spw_map_put(&tables.pieces, handle, piece)) {
        piece->references++;
    }
    pthread_mutex_unlock(&tables.lock);
}

CUresult spw_serve_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct piece *piece = drop_reference(handle);
    CUresult result = spw_track_driver()->cuMemRelease(handle);
    bool gone;

    if (piece == NULL) {
        return result;
    }
    if (result != CUDA_SUCCESS) {
        add_reference(handle, piece);
        return result;
    }
    pthread_mutex_lock(&tables.lock);
    gone = piece->references == 0 && piece->mappings == 0;
    pthread_mutex_unlock(&tables.lock);
    if (gone) {
        bury(piece);
    }
    return result;
}

/* ---- mappings ---- */

CUresult spw_serve_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                            CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct mapping *mapping;
    CUresult result;

    SPW_FORWARD(result, spw_track_driver()->cuMemMap(ptr, size, offset, handle, flags));
    if (result != CUDA_SUCCESS) {
        return result;
    }
    mapping = malloc(sizeof(*mapping));
    pthread_mutex_lock(&tables.lock);
    if (mapping != NULL) {
        *mapping = (struct mapping){spw_map_get(&tables.pieces, handle), ptr, size};
        if (mapping->piece != NULL && spw_map_put(&tables.mappings, ptr, mapping)) {
            mapping->piece->mappings++;
            mapping = NULL;
        }
    }
    pthread_mutex_unlock(&tables.lock);
    free(mapping);
    return result;
}

/* Takes the mapping at `address` out, and returns its piece when that was the last of it. */
static struct piece *unmap_one(uint64_t address, uint64_t *ret_bytes)
{
    struct piece *gone = NULL;
    struct mapping *mapping;

    pthread_mutex_lock(&tables.lock);
    mapping = spw_map_take(&tables.mappings, address);
    if (mapping != NULL && --mapping->piece->mappings == 0 && mapping->piece->references == 0) {
        gone = mapping->piece;
    }
    pthread_mutex_unlock(&tables.lock);
    *ret_bytes = mapping == NULL ? 0 : mapping->bytes;
    free(mapping);
    return gone;
}

CUresult spw_serve_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    CUresult result = spw_track_driver()->cuMemUnmap(ptr, size);
    uint64_t bytes = 1;

    /* One call may take several neighbouring mappings away. */
    for (uint64_t at = ptr; result == CUDA_SUCCESS && bytes != 0 && at < ptr + size; at += bytes) {
        struct piece *gone = unmap_one(at, &bytes);

        if (gone != NULL) {
            bury(gone);
        }
    }
    return result;
}

/* The piece that is mapped at an address, which may lie inside the mapping. Caller holds the lock.
 */
static struct piece *piece_at(uint64_t address)
{
    const struct mapping *mapping;
    size_t cursor = 0;

    while ((mapping = spw_map_next(&tables.mappings, &cursor)) != NULL) {
        if (address - mapping->address < mapping->bytes) {
            return mapping->piece;
        }
    }
    return NULL;
}

/* A block has no handle of its own: that of a chunk would let the caller map other blocks too. */
CUresult spw_serve_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)addr;
    struct piece *piece = NULL;
    struct spw_pool *pool;
    CUresult result;

    if (spw_track_device_owner(address, &pool) != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = spw_track_driver()->cuMemRetainAllocationHandle(handle, addr);
    if (result == CUDA_SUCCESS) {
        pthread_mutex_lock(&tables.lock);
        piece = piece_at(address);
        pthread_mutex_unlock(&tables.lock);
    }
    if (piece != NULL) {
        add_reference(*handle, piece);
    }
    return result;
}

void spw_serve_vmm_lock(void)
{
    pthread_mutex_lock(&tables.lock);
}

void spw_serve_vmm_unlock(void)
{
    pthread_mutex_unlock(&tables.lock);
}

void spw_serve_vmm_reset(void)
{
    pthread_mutex_lock(&tables.lock);
    spw_map_clear(&tables.mappings);
    spw_map_clear(&tables.pieces);
    pthread_mutex_unlock(&tables.lock);
}
