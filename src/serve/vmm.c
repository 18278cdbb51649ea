/* Physical memory and mappings that the program manages itself. Physical memory exists while it has
 * a reference or a mapping. During that time, device memory counts against the limit. If the device
 * is full, blocks of the pool make room.
 *
 * Only PyTorch's own memory goes to the host instead. Other libraries may need device memory, for
 * peers, network cards or multicast. PyTorch asks for file descriptors and for RDMA even if it does
 * not need them. Host memory can also have file descriptors. */
#include "call/site.h"
#include "device/device.h"
#include "device/spill.h"
#include "migrate/move/barrier.h"
#include "policy/decision.h"
#include "policy/state.h"
#include "process/caller.h"
#include "process/native.h"
#include "program/mappings.h"
#include "program/stream.h"
#include "record/record.h"
#include "serve/account.h"
#include "serve/handlers.h"
#include "serve/page_locked.h"

#include <stdlib.h>

/* The most times that a request is repeated after room was made. */
enum { MOST_TRIES = 64 };

/* ---- charges ---- */

static enum spw_err charge(const struct spw_piece *piece)
{
    struct spw_device *device = spw_device_at(piece->ordinal);
    struct spw_pool *pool;
    enum spw_err err;

    if (piece->host) {
        if (!spw_device_allows(device, piece->bytes)) {
            return SPW_E_LIMIT;
        }
        spw_serve_page_locked(device, piece->site, (int64_t)piece->bytes);
        return SPW_OK;
    }
    do {
        pool = spw_device_pool(device);
        err = pool == NULL ? SPW_E_UNSUPPORTED
                           : spw_device_charge(device, pool, piece->bytes, piece->site);
    } while (err == SPW_E_LIMIT && spw_migrate_barrier_pass_again());
    return err;
}

static void discharge(const struct spw_piece *piece)
{
    struct spw_device *device = spw_device_at(piece->ordinal);
    struct spw_pool *pool;

    if (piece->host) {
        spw_serve_page_locked(device, piece->site, -(int64_t)piece->bytes);
        return;
    }
    pool = spw_device_opened(device);
    if (pool != NULL) {
        spw_pool_account_remove(pool, piece->rule, piece->bytes, piece->tallied_host);
        (piece->spilled ? spw_pool_discharge_host : spw_pool_discharge)(pool, piece->bytes,
                                                                        piece->site);
    }
}

/* In a recording, the address of the piece is its name, because handles are used again. */
static void record(const struct spw_piece *piece)
{
    if (spw_record_active()) {
        spw_record_alloc(&(struct spw_record_alloc){
            .device = piece->ordinal,
            .address = (uint64_t)(uintptr_t)piece,
            .bytes = piece->bytes,
            .site = piece->site,
            .source = piece->host ? SPW_RECORD_PINNED : SPW_RECORD_CREATED,
            .charged = !piece->host,
            .host_bytes = piece->spilled ? piece->bytes : 0,
            .rule = piece->rule,
        });
    }
}

/* Undoes the charge of a piece, and frees the piece. */
static void refund_piece(struct spw_piece *piece)
{
    discharge(piece);
    free(piece);
}

/* Ends a piece that has no references and no mappings. */
static void end_piece(struct spw_piece *piece)
{
    if (spw_record_active()) {
        spw_record_free(piece->ordinal, 0, (uint64_t)(uintptr_t)piece);
    }
    refund_piece(piece);
}

/* ---- handles ---- */

/* Returns the device that a cuMemCreate is charged to; NULL if that device is not visible.
 * *ret_host is true if the call is for host memory. */
static struct spw_device *device_for(const CUmemAllocationProp *prop, bool *ret_host)
{
    const struct spw_stream_info *here;

    *ret_host = prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    if (!*ret_host) {
        return spw_device_of(prop->location.id);
    }
    here = spw_program_stream_current();
    return here == NULL ? spw_device_at(0) : spw_device_at(here->ordinal);
}

/* Returns true for memory that may be on the host, because only its own device needs to access
 * it. */
static bool suits_host(enum spw_caller caller, const CUmemAllocationProp *prop)
{
    CUmemAllocationHandleType types = prop->requestedHandleTypes;

    return caller == SPW_CALLER_PYTORCH
               ? types == CU_MEM_HANDLE_TYPE_NONE ||
                     types == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
               : caller == SPW_CALLER_OTHER && types == CU_MEM_HANDLE_TYPE_NONE &&
                     prop->allocFlags.gpuDirectRDMACapable == 0;
}

/* Charges a piece to the host, because its device has no room (`err` is the reason), or because a
 * policy places it there (`err` is SPW_OK). Changes *prop accordingly. */
static enum spw_err charge_host(struct spw_device *device, struct spw_piece *piece,
                                enum spw_err err, CUmemAllocationProp *prop)
{
    CUmemLocation place;

    if (piece->host || piece->spilled || !piece->suits_host ||
        spw_device_charge_host(device, piece->bytes, piece->site, err, &place) != SPW_OK) {
        return err == SPW_OK ? SPW_E_LIMIT : err;
    }
    piece->spilled = true;
    prop->location = place;
    prop->allocFlags.gpuDirectRDMACapable = 0;
    prop->allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE;
    return SPW_OK;
}

/* ---- ranges ---- */

/* The range of addresses that the calling thread reserved last, until it maps something. PyTorch
 * reserves 1 1/8 of the device for a segment, creates the memory of a tensor piece by piece, and
 * maps the pieces when it has all of them. PyTorch has no other check that a tensor fits into a new
 * segment. It relies on the device being full first, and accesses memory behind the end of the
 * segment if the device is not full. A tensor that would exactly fill the segment looks the same
 * here. */
static _Thread_local struct {
    uint64_t bytes; /* 0: there is none */
    uint64_t created;
} range __attribute__((tls_model("initial-exec")));

CUresult spw_serve_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                                       CUdeviceptr addr, unsigned long long flags)
{
    CUresult result;

    SPW_FORWARD(result,
                spw_process_driver()->cuMemAddressReserve(ptr, size, alignment, addr, flags));
    if (result == CUDA_SUCCESS) {
        range.bytes = size;
        range.created = 0;
    }
    return result;
}

/* Returns true if a piece is the last one for a range that the device alone can never fill. */
static bool fills_range(struct spw_device *device, const struct spw_piece *piece)
{
    return range.bytes > 0 && piece->redirects && range.bytes - range.created <= piece->bytes &&
           spw_device_pool(device) != NULL && range.bytes > device->ruled.total_bytes;
}

/* Counts a piece that was created for the range. After a refusal, PyTorch gives all its pieces
 * back. */
static void count_in_range(uint64_t bytes, CUresult result)
{
    range.created = result != CUDA_SUCCESS                ? 0
                    : bytes < range.bytes - range.created ? range.created + bytes
                                                          : range.bytes;
}

/* ---- by a policy ---- */

/* Enters a piece in the account of its rule. If the rule's limit is exceeded, applies the rule's
 * `then`. */
static enum spw_err tally(struct spw_device *device, struct spw_pool *pool, struct spw_piece *piece,
                          struct spw_decision *decision)
{
    enum spw_err err =
        spw_pool_account_add(pool, &decision->placement, piece->bytes, decision->placement.on_host);

    if (err == SPW_E_QUOTA) {
        if (!spw_policy_decision_beyond(&device->ruled, decision, piece->bytes)) {
            return err;
        }
        err = spw_pool_account_add(pool, &decision->placement, piece->bytes,
                                   decision->placement.on_host);
    }
    piece->rule = decision->placement.account;
    piece->tallied_host = decision->placement.on_host;
    return err;
}

/* Charges a piece as its rule asks. Physical memory that the program creates itself cannot be split
 * between tiers. */
static enum spw_err charge_by_rule(struct spw_device *device, struct spw_piece *piece,
                                   struct spw_decision *decision, CUmemAllocationProp *prop)
{
    struct spw_pool *pool = spw_device_pool(device);
    enum spw_err err;

    if (pool == NULL) {
        return SPW_E_UNSUPPORTED;
    }
    err = tally(device, pool, piece, decision);
    if (err != SPW_OK) {
        return err;
    }
    if (decision->placement.host_permille > 0 || decision->placement.lazy) {
        spw_policy_decision_unmet(
            &device->ruled, decision->rule,
            "memory from cuMemCreate cannot be split between device and host");
    }
    if (decision->placement.on_host) {
        if (charge_host(device, piece, SPW_OK, prop) == SPW_OK) {
            return SPW_OK;
        }
        spw_policy_decision_unmet(&device->ruled, decision->rule,
                                  piece->suits_host ? "the host has no room for it"
                                                    : "other devices or processes may access it");
        spw_pool_account_to_device(pool, piece->rule, piece->bytes);
        piece->tallied_host = false;
    }
    err = charge(piece);
    if (err == SPW_E_LIMIT && decision->placement.on_device) {
        spw_policy_decision_unmet(&device->ruled, decision->rule,
                                  "the device has no more room for it");
    }
    return err;
}

/* Charges a piece to the device. If the device has no room, charges it to the host. */
static enum spw_err charge_somewhere(struct spw_device *device, struct spw_piece *piece,
                                     CUmemAllocationProp *prop)
{
    struct spw_decision decision;
    enum spw_err err;

    if (SPW_UNLIKELY(atomic_load_explicit(&spw_policy_state.policy, memory_order_acquire) !=
                     NULL) &&
        !piece->host && spw_process_settings()->mode != SPW_MODE_OBSERVE &&
        spw_policy_decision_make(&device->ruled, piece->bytes, piece->site, "cuMemCreate",
                                 &decision)) {
        err = charge_by_rule(device, piece, &decision, prop);
    } else {
        err = charge(piece);
    }
    return err == SPW_E_LIMIT && piece->redirects ? charge_host(device, piece, err, prop) : err;
}

/* Frees a piece that could not be charged. */
static void drop_piece(struct spw_piece *piece)
{
    struct spw_pool *pool = spw_device_opened(spw_device_at(piece->ordinal));

    if (pool != NULL) {
        spw_pool_account_remove(pool, piece->rule, piece->bytes, piece->tallied_host);
    }
    free(piece);
}

/* Creates device memory. Repeats this while room can be made. */
static CUresult create_on_device(const struct spw_piece *piece,
                                 CUmemGenericAllocationHandle *handle,
                                 const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct spw_driver *driver = spw_process_driver();
    CUresult result = driver->cuMemCreate(handle, piece->bytes, prop, flags);

    for (int i = 0; i < MOST_TRIES && result == CUDA_ERROR_OUT_OF_MEMORY &&
                    (spw_device_make_room() || spw_migrate_barrier_pass_again());
         i++) {
        result = driver->cuMemCreate(handle, piece->bytes, prop, flags);
    }
    return result;
}

/* Creates a piece that was charged. If the device is full nevertheless, creates the piece on the
 * host, if it may be there. */
static CUresult create(struct spw_device *device, struct spw_piece *piece,
                       CUmemGenericAllocationHandle *handle, CUmemAllocationProp *prop,
                       unsigned long long flags)
{
    struct spw_piece refused = *piece;
    CUresult result = create_on_device(piece, handle, prop, flags);

    refused.rule = 0; /* the piece stays in the account */
    if (result == CUDA_ERROR_OUT_OF_MEMORY && piece->redirects &&
        charge_host(device, piece, SPW_E_NO_MEMORY, prop) == SPW_OK) {
        discharge(&refused);
        result = spw_process_driver()->cuMemCreate(handle, piece->bytes, prop, flags);
    }
    return result;
}

/* Accounts for the real driver's result for a charged piece. */
static CUresult record_result(struct spw_piece *piece, const CUmemGenericAllocationHandle *handle,
                              CUresult result)
{
    struct spw_device *device = piece->host ? NULL : spw_device_at(piece->ordinal);
    uint64_t bytes = piece->bytes;
    uint32_t site = piece->site;

    if (result != CUDA_SUCCESS) {
        refund_piece(piece);
    } else {
        record(piece);
        if (!spw_program_mappings_add(*handle, piece)) {
            end_piece(piece);
        } else if (device != NULL) {
            spw_counter_add(&device->counters->vmm_creates, 1);
            spw_stats_grant(device->refusal, bytes);
        }
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY && device != NULL) {
        (void)spw_serve_account_oom(device, spw_device_pool(device), "cuMemCreate", bytes, site,
                                    SPW_E_NO_MEMORY);
    }
    return result;
}

CUresult spw_serve_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                               const CUmemAllocationProp *prop, unsigned long long flags)
{
    enum spw_caller caller = spw_process_caller();
    struct spw_driver *driver = spw_process_driver();
    struct spw_device *device = NULL;
    CUmemAllocationProp placed;
    struct spw_piece *piece = NULL;
    CUresult result;
    bool host;

    if (SPW_UNLIKELY(spw_process_native_is_refused())) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (SPW_UNLIKELY(caller == SPW_CALLER_PYTORCH)) {
        spw_process_ops.look();
    }
    spw_migrate_barrier_pass();
    if (handle != NULL && prop != NULL && size > 0 && spw_device_count() > 0) {
        device = device_for(prop, &host);
        piece = device == NULL ? NULL : malloc(sizeof(*piece));
    }
    if (piece != NULL) {
        enum spw_err err;

        placed = *prop;
        *piece = (struct spw_piece){size,
                                    device->ordinal,
                                    host,
                                    .suits_host = suits_host(caller, prop),
                                    .redirects = caller == SPW_CALLER_PYTORCH,
                                    .site = spw_call_site("cuMemCreate"),
                                    .references = 1};
        err = fills_range(device, piece) ? SPW_E_RANGE : charge_somewhere(device, piece, &placed);
        if (err == SPW_E_LIMIT || err == SPW_E_QUOTA || err == SPW_E_RANGE) {
            uint32_t site = piece->site;

            count_in_range(size, CUDA_ERROR_OUT_OF_MEMORY);
            drop_piece(piece);
            return spw_serve_account_oom(device, spw_device_pool(device), "cuMemCreate", size, site,
                                         err);
        }
        if (err != SPW_OK) {
            drop_piece(piece);
            piece = NULL;
        }
    }
    if (piece == NULL) {
        SPW_FORWARD(result, driver->cuMemCreate(handle, size, prop, flags));
        return result;
    }
    result = create(device, piece, handle, &placed, flags);
    count_in_range(size, result);
    return record_result(piece, handle, result);
}

CUresult spw_serve_cuMemRelease(CUmemGenericAllocationHandle handle)
{
    struct spw_piece *piece = spw_program_mappings_release_begin(handle);
    CUresult result = spw_process_driver()->cuMemRelease(handle);

    if (piece != NULL && spw_program_mappings_release_end(handle, piece, result == CUDA_SUCCESS)) {
        end_piece(piece);
    }
    return result;
}

/* ---- mappings ---- */

CUresult spw_serve_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                            CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult result;

    SPW_FORWARD(result, spw_process_driver()->cuMemMap(ptr, size, offset, handle, flags));
    if (result == CUDA_SUCCESS) {
        range.bytes = 0;
        spw_program_mappings_map(handle, ptr, size);
    }
    return result;
}

CUresult spw_serve_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    CUresult result = spw_process_driver()->cuMemUnmap(ptr, size);
    uint64_t bytes = 1;

    /* One call may unmap several neighbouring mappings. */
    for (uint64_t at = ptr; result == CUDA_SUCCESS && bytes != 0 && at < ptr + size; at += bytes) {
        struct spw_piece *gone = spw_program_mappings_unmap(at, &bytes);

        if (gone != NULL) {
            end_piece(gone);
        }
    }
    return result;
}

/* A block has no handle of its own. With the handle of a chunk, the caller could map other
 * blocks. */
CUresult spw_serve_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)addr;
    struct spw_pool *pool;
    CUresult result;

    if (spw_device_owner(address, &pool) != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    result = spw_process_driver()->cuMemRetainAllocationHandle(handle, addr);
    if (result == CUDA_SUCCESS) {
        spw_program_mappings_retain(*handle, address);
    }
    return result;
}
