#include "submit/indirect.h"

#include "device/lookup.h"
#include "submit/rows.h"
#include "submit/state.h"
#include "submit/tensor_map.h"
#include "system/lock.h"
#include "system/log.h"
#include "system/room.h"
#include "system/safe_read.h"

#include <stdatomic.h>

enum {
    CHUNK = 16 << 10,    /* bytes read at a time; a longer copy is not searched for tensor maps */
    LITTLE = 512,        /* bytes of a copy that is read on the stack */
    MOST_ROWS = 1 << 12, /* of one copy that are read one by one */
    GROUP = 16,          /* words */
    WORD = sizeof(uint64_t)
};

/* ---- what is known ---- */

static bool is_in(const struct spw_spans *spans, uint64_t address)
{
    bool found;

    spw_lock(&spw_locks.indirect);
    found = spw_program_spans_have(spans, address);
    spw_unlock(&spw_locks.indirect);
    return found;
}

static bool may_be_mapped(uint64_t address)
{
    return address >=
               atomic_load_explicit(&spw_submit.indirect.mapped_begin, memory_order_acquire) &&
           address < atomic_load_explicit(&spw_submit.indirect.mapped_end, memory_order_acquire);
}

bool spw_submit_indirect_at(uint64_t address, bool ours)
{
    if (ours) {
        return atomic_load_explicit(&spw_submit.indirect.holder_count, memory_order_acquire) > 0 &&
               is_in(&spw_submit.indirect.holders, address);
    }
    return may_be_mapped(address) && is_in(&spw_submit.indirect.mapped, address);
}

bool spw_submit_indirect_everywhere(void)
{
    return atomic_load_explicit(&spw_submit.indirect.everywhere, memory_order_relaxed);
}

void spw_submit_indirect_freed(uint64_t address)
{
    struct spw_span span;

    if (atomic_load_explicit(&spw_submit.indirect.holder_count, memory_order_acquire) == 0) {
        return;
    }
    spw_lock(&spw_locks.indirect);
    (void)spw_program_spans_take(&spw_submit.indirect.holders, address, &span);
    atomic_store_explicit(&spw_submit.indirect.holder_count, spw_submit.indirect.holders.count,
                          memory_order_release);
    spw_unlock(&spw_locks.indirect);
}

void spw_submit_indirect_mapped(uint64_t address, uint64_t bytes)
{
    if (bytes == 0 || bytes > UINT64_MAX - address) {
        return;
    }
    spw_lock(&spw_locks.indirect);
    if (!spw_program_spans_add(&spw_submit.indirect.mapped, address, bytes)) {
        atomic_store(&spw_submit.indirect.everywhere, true);
    }
    if (atomic_load(&spw_submit.indirect.mapped_end) == 0 ||
        address < atomic_load(&spw_submit.indirect.mapped_begin)) {
        atomic_store(&spw_submit.indirect.mapped_begin, address);
    }
    if (address + bytes > atomic_load(&spw_submit.indirect.mapped_end)) {
        atomic_store(&spw_submit.indirect.mapped_end, address + bytes);
    }
    spw_unlock(&spw_locks.indirect);
}

bool spw_submit_indirect_unmapped(uint64_t address, struct spw_span *ret_span)
{
    bool taken;

    if (!may_be_mapped(address)) {
        return false;
    }
    spw_lock(&spw_locks.indirect);
    taken = spw_program_spans_take(&spw_submit.indirect.mapped, address, ret_span);
    spw_unlock(&spw_locks.indirect);
    return taken;
}

static void add_everywhere(uint64_t to)
{
    if (!atomic_exchange(&spw_submit.indirect.everywhere, true)) {
        spw_log(SPW_LOG_INFO,
                "addresses were copied to 0x%llx, where any kernel may read them: from now on, "
                "each kernel counts as using all memory",
                (unsigned long long)to);
    }
}

static void add_holder(const struct spw_block *block)
{
    bool added;

    spw_lock(&spw_locks.indirect);
    added = spw_program_spans_add(&spw_submit.indirect.holders, block->address, block->bytes);
    atomic_store_explicit(&spw_submit.indirect.holder_count, spw_submit.indirect.holders.count,
                          memory_order_release);
    spw_unlock(&spw_locks.indirect);
    if (!added) {
        add_everywhere(block->address);
    }
}

/* ---- copies ---- */

/* True when an address that is neither ours nor mapped is device memory, which a launch can reach:
 * a global of a module, or an allocation of the driver. For host memory that CUDA does not know,
 * the driver returns an error. */
static bool is_of_a_device(uint64_t address)
{
    struct spw_driver *driver = spw_process_driver();
    unsigned type = 0;

    return SPW_DRIVER_CALL(driver, -1, cuPointerGetAttribute, &type,
                           CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                           (CUdeviceptr)address) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_DEVICE;
}

/* Notes that addresses are copied to memory at `to`. */
static void hold(uint64_t to)
{
    struct spw_pool *pool;
    struct spw_block block;

    if (spw_device_owner(to, &pool) != NULL) {
        if (spw_pool_find(pool, to, &block)) {
            add_holder(&block);
        }
    } else if (!spw_submit_indirect_at(to, /* ours */ false) && is_of_a_device(to)) {
        add_everywhere(to);
    }
}

/* True when the highest bits of a word are those of an address in an arena. Most data fails this.
 */
static bool may_be_address(uint64_t word)
{
    return (word >> 32 != 0) & (word >> 57 == 0);
}

/* True when a word is the address of a live block. */
static bool is_address(uint64_t word)
{
    struct spw_pool *pool;
    struct spw_block block;

    return may_be_address(word) && spw_device_owner(word, &pool) != NULL &&
           spw_pool_find(pool, word, &block);
}

/* Tests words in groups, without a branch for each word. */
static bool has_address(const uint64_t *words, size_t count)
{
    for (size_t at = 0; at < count; at += GROUP) {
        size_t end = count - at < GROUP ? count : at + GROUP;
        bool any = false;

        for (size_t i = at; i < end; i++) {
            any |= may_be_address(words[i]);
        }
        for (size_t i = at; any && i < end; i++) {
            if (is_address(words[i])) {
                return true;
            }
        }
    }
    return false;
}

static bool has_tensor_map(const uint64_t *words, size_t count)
{
    for (size_t at = 0; at + SPW_TENSOR_MAP_BYTES / WORD <= count;
         at += SPW_TENSOR_MAP_ALIGN / WORD) {
        if (is_address(spw_submit_tensor_map_find(words + at))) {
            return true;
        }
    }
    return false;
}

/* True when there may be addresses among `bytes` of host memory at `from`, which are copied to
 * `to`. Memory that cannot be read may hold addresses. */
static bool carries(uint64_t to, uint64_t from, size_t bytes)
{
    uint64_t little[LITTLE / WORD];
    uint64_t SPW_ROOM *room = bytes > LITTLE ? spw_room_take(CHUNK) : NULL;
    uint64_t *chunk = bytes > LITTLE ? room : little;
    size_t skip = (size_t)-to % WORD;

    if (chunk == NULL) {
        return true;
    }

    for (size_t at = skip; at + WORD <= bytes; at += CHUNK) {
        size_t count = (bytes - at < CHUNK ? bytes - at : CHUNK) / WORD;

        if (!spw_safe_read((uintptr_t)(from + at), chunk, count * WORD) ||
            has_address(chunk, count)) {
            return true;
        }
        if (spw_submit_tensor_map_any() && bytes <= CHUNK && to % SPW_TENSOR_MAP_ALIGN == 0 &&
            has_tensor_map(chunk, count)) {
            return true;
        }
    }
    return false;
}

void spw_submit_indirect_copy(uint64_t to, uint64_t from, size_t bytes)
{
    struct spw_pool *pool;
    bool found;

    if (bytes < WORD) {
        return;
    }
    if (spw_device_owner(from, &pool) != NULL) {
        found = spw_submit_indirect_at(from, /* ours */ true);
    } else {
        found = bytes <= SPW_INDIRECT_MOST && carries(to, from, bytes);
    }
    if (found) {
        hold(to);
    }
}

void spw_submit_indirect_copy_box(struct spw_cut_box box)
{
    const struct spw_cut_side *to = &box.to, *from = &box.from;
    size_t rows = box.height * box.depth;

    if (to->address == 0 || from->address == 0 || box.width == 0 || rows == 0 ||
        rows > SIZE_MAX / box.width || box.width * rows > SPW_INDIRECT_MOST) {
        return;
    }
    if (rows > MOST_ROWS || box.width < WORD) {
        hold(to->address);
        return;
    }
    for (size_t z = 0; z < box.depth; z++) {
        for (size_t y = 0; y < box.height; y++) {
            spw_submit_indirect_copy(to->address + z * to->slice + y * to->pitch,
                                     from->address + z * from->slice + y * from->pitch, box.width);
        }
    }
}

void spw_submit_indirect_copy_batch(const CUdeviceptr *to, const CUdeviceptr *from,
                                    const size_t *bytes, size_t count)
{
    for (size_t i = 0; to != NULL && from != NULL && bytes != NULL && i < count; i++) {
        spw_submit_indirect_copy(to[i], from[i], bytes[i]);
    }
}

void spw_submit_indirect_copy_3d_batch(const CUDA_MEMCPY3D_BATCH_OP *copies, size_t count)
{
    for (size_t i = 0; copies != NULL && i < count; i++) {
        spw_submit_indirect_copy_box(spw_submit_rows_batched(&copies[i]));
    }
}

/* ---- fork ---- */

void spw_submit_indirect_reset(void)
{
    spw_lock(&spw_locks.indirect);
    spw_program_spans_clear(&spw_submit.indirect.holders);
    spw_program_spans_clear(&spw_submit.indirect.mapped);
    atomic_store(&spw_submit.indirect.holder_count, 0);
    atomic_store(&spw_submit.indirect.mapped_end, 0);
    atomic_store(&spw_submit.indirect.mapped_begin, 0);
    atomic_store(&spw_submit.indirect.everywhere, false);
    spw_unlock(&spw_locks.indirect);
}
