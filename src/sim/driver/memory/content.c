/* The content of simulated memory, and checks of ranges. */
#include "sim/driver/memory/content.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/driver/core/control.h"
#include "sim/driver/core/export.h"
#include "sim/driver/core/lock.h"
#include "sim/driver/memory/block.h"
#include "sim/driver/memory/mapping.h"
#include "sim/driver/memory/payload.h"
#include "sim/driver/memory/space.h"

/* In ranges of at least this size, zeroed pages are returned to the system. */
#define DISCARD_BYTES ((size_t)64 << 10)

enum sim_mem_kind sim_mem_kind(CUdeviceptr address)
{
    const struct sim_block *block = sim_block_find(address);

    if (block != NULL && block->kind == SIM_BLOCK_MANAGED) {
        return SIM_MEM_MANAGED;
    }
    if (block != NULL && sim_block_is_host(block)) {
        return SIM_MEM_PINNED;
    }
    return sim_space_find(address) != NULL ? SIM_MEM_DEVICE : SIM_MEM_PAGEABLE;
}

bool sim_mem_is_device(CUdeviceptr address)
{
    return sim_mem_kind(address) == SIM_MEM_DEVICE;
}

int sim_mem_device(CUdeviceptr address)
{
    const struct sim_block *block = sim_block_find(address);
    const struct sim_mapping *mapping;

    if (block != NULL) {
        return block->device->ordinal;
    }
    mapping = sim_mapping_find(address);
    if (mapping == NULL || mapping->kind != SIM_MAPPING_USER) {
        return -1;
    }
    if (mapping->chunk->device != NULL) {
        return mapping->chunk->device->ordinal;
    }
    /* For memory at a host location, the lowest ordinal of the devices that have access. */
    return mapping->readers != 0 ? __builtin_ctzll(mapping->readers) : 0;
}

CUresult sim_mem_check(CUdeviceptr address, size_t size, int device, bool write)
{
    const struct sim_device *by = sim_device_get(device);
    uint64_t end = address + size;

    if (end < address || by == NULL) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    while (address < end) {
        const struct sim_block *block = sim_block_find(address);
        const struct sim_mapping *mapping;

        if (block != NULL && sim_block_is_host(block)) {
            address = sim_range_end(&block->range);
            continue;
        }
        mapping = sim_mapping_find(address);
        if (mapping == NULL || (block == NULL && mapping->kind != SIM_MAPPING_USER) ||
            !sim_mapping_allows(mapping, by, write)) {
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
        address = sim_range_end(block != NULL ? &block->range : &mapping->range);
    }
    return CUDA_SUCCESS;
}

/* The location (host or device) and the end of the memory at the address; false if there is no
 * memory. */
static bool locate(CUdeviceptr address, bool *ret_host, uint64_t *ret_end)
{
    const struct sim_block *block = sim_block_find(address);
    const struct sim_mapping *mapping;

    if (block != NULL) {
        *ret_host = sim_block_is_host(block) && block->kind != SIM_BLOCK_MANAGED;
        *ret_end = sim_range_end(&block->range);
        return true;
    }
    mapping = sim_mapping_find(address);
    if (mapping == NULL) {
        return false;
    }
    *ret_host = mapping->chunk->device == NULL;
    *ret_end = sim_range_end(&mapping->range);
    return true;
}

void sim_mem_locate(CUdeviceptr address, size_t size, uint64_t *ret_device_bytes,
                    uint64_t *ret_host_bytes)
{
    uint64_t end = size < UINT64_MAX - address ? address + size : UINT64_MAX;
    uint64_t bytes[2] = {0, 0};
    uint64_t stop;
    bool host;

    for (; address < end && locate(address, &host, &stop); address = stop) {
        stop = stop < end ? stop : end;
        bytes[host] += stop - address;
    }
    *ret_device_bytes = bytes[false];
    *ret_host_bytes = bytes[true];
}

/* A stretch of memory that is accessed in one way. */
struct piece {
    struct sim_extent *extent; /* NULL: direct */
    uint64_t at;               /* in the extent */
    char *direct;              /* NULL: a hole, if `extent` is NULL too */
    size_t size;
};

static struct piece piece_at(CUdeviceptr address, size_t size)
{
    const struct sim_mapping *mapping = sim_mapping_find(address);
    const struct sim_reservation *reservation;
    struct piece piece = {.size = size};
    uint64_t end = address + size;

    if (mapping != NULL) {
        piece.extent = &mapping->chunk->extent;
        piece.at = address - mapping->range.start;
        end = sim_range_end(&mapping->range);
    } else {
        reservation = sim_space_find(address);
        if (reservation == NULL) {
            piece.direct = (char *)(uintptr_t)address;
        } else {
            mapping = sim_mapping_from(address);
            end = mapping != NULL ? mapping->range.start : end;
        }
    }
    if (end - address < size) {
        piece.size = (size_t)(end - address);
    }
    return piece;
}

bool sim_mem_is_known(CUdeviceptr address, size_t size)
{
    while (size > 0) {
        struct piece piece = piece_at(address, size);

        if (piece.extent != NULL ? !sim_known_all(&piece.extent->known, piece.at, piece.size)
                                 : piece.direct == NULL) {
            return false;
        }
        address += piece.size;
        size -= piece.size;
    }
    return true;
}

void sim_mem_set_known(CUdeviceptr address, size_t size, bool is_known)
{
    while (size > 0) {
        struct piece piece = piece_at(address, size);

        if (piece.extent != NULL) {
            sim_known_set(&piece.extent->known, piece.at, piece.size, is_known);
        }
        address += piece.size;
        size -= piece.size;
    }
}

void sim_mem_lose(CUdeviceptr address, size_t size)
{
    struct piece piece = piece_at(address, SIZE_MAX);

    while (piece.extent != NULL && piece.size > 0) {
        uint64_t least = piece.at + (size < piece.size ? size : piece.size);
        uint64_t end = sim_known_end(&piece.extent->known, piece.at);
        size_t lost;

        end = end > piece.at + piece.size ? piece.at + piece.size : end < least ? least : end;
        lost = (size_t)(end - piece.at);
        sim_known_set(&piece.extent->known, piece.at, lost, false);
        if (lost < piece.size) {
            return;
        }
        address += lost;
        size -= size < lost ? size : lost;
        piece = piece_at(address, SIZE_MAX);
    }
}

void sim_mem_read(void *dst, CUdeviceptr src, size_t size)
{
    char *out = dst;

    while (size > 0) {
        struct piece piece = piece_at(src, size);

        if (piece.extent != NULL) {
            sim_extent_read(piece.extent, piece.at, out, piece.size);
        } else if (piece.direct != NULL) {
            memmove(out, piece.direct, piece.size);
        } else {
            memset(out, 0, piece.size);
        }
        src += piece.size;
        out += piece.size;
        size -= piece.size;
    }
}

/* Bytes of host memory that the content of a range takes. */
static size_t content_of(CUdeviceptr address, size_t size)
{
    size_t bytes = 0;

    while (size > 0) {
        struct piece piece = piece_at(address, size);

        if (piece.extent != NULL) {
            bytes += sim_extent_content(piece.extent, piece.at, piece.size);
        }
        address += piece.size;
        size -= piece.size;
    }
    return bytes;
}

/* Sets a range to zeros, which take no host memory, and marks its content as unknown. */
static void clear(CUdeviceptr address, size_t size)
{
    while (size > 0) {
        struct piece piece = piece_at(address, size);

        if (piece.extent != NULL) {
            sim_extent_zero(piece.extent, piece.at, piece.size);
            sim_known_set(&piece.extent->known, piece.at, piece.size, false);
        }
        address += piece.size;
        size -= piece.size;
    }
}

void sim_mem_discard(CUdeviceptr address, size_t size)
{
    if (size >= DISCARD_BYTES) {
        clear(address, size);
    } else {
        sim_mem_set_known(address, size, false);
    }
}

/* True if data may be written. If not, clears the destination. */
static bool admit(CUdeviceptr dst, size_t size)
{
    if (sim_space_find(dst) == NULL || sim_payload_has_room(size, 0) ||
        sim_payload_has_room(size, content_of(dst, size))) {
        return true;
    }
    sim_payload_drop(size);
    clear(dst, size);
    return false;
}

void sim_mem_write(CUdeviceptr dst, const void *src, size_t size)
{
    const char *in = src;

    if (!admit(dst, size)) {
        return;
    }
    while (size > 0) {
        struct piece piece = piece_at(dst, size);

        if (piece.extent != NULL) {
            sim_extent_write(piece.extent, piece.at, in, piece.size);
            sim_known_set(&piece.extent->known, piece.at, piece.size, true);
        } else if (piece.direct != NULL) {
            memmove(piece.direct, in, piece.size);
        }
        dst += piece.size;
        in += piece.size;
        size -= piece.size;
    }
}

/* True if the simulator mapped all of [address, address + size), as private anonymous host memory.
 */
static bool is_own_host(const char *address, size_t size)
{
    const struct sim_block *block = sim_block_find((uintptr_t)address);

    return block != NULL && (block->kind == SIM_BLOCK_HOST || block->kind == SIM_BLOCK_MANAGED) &&
           (uintptr_t)address + size <= sim_range_end(&block->range);
}

/* Zeros host memory that the simulator owns. Whole pages are returned to the system. */
static void zero_own_host(char *address, size_t size)
{
    uintptr_t page = (uintptr_t)getpagesize();
    char *first = address + (-(uintptr_t)address & (page - 1));
    char *last = address + size - ((uintptr_t)(address + size) & (page - 1));

    if (first >= last || madvise(first, (size_t)(last - first), MADV_DONTNEED) != 0) {
        memset(address, 0, size);
        return;
    }
    memset(address, 0, (size_t)(first - address));
    memset(last, 0, (size_t)(address + size - last));
}

/* If the simulator owns the destination, holes of the source become zero pages of the destination.
 * Untouched memory therefore takes no host memory when it is copied to the host. */
static void read_to_host(char *dst, const struct piece *src, size_t size)
{
    uint64_t at = src->at;
    size_t skip, data;

    if (size < DISCARD_BYTES || !is_own_host(dst, size)) {
        sim_extent_read(src->extent, at, dst, size);
        return;
    }
    while (size > 0 && sim_extent_data(src->extent, at, size, &skip, &data)) {
        zero_own_host(dst, skip);
        sim_extent_read(src->extent, at + skip, dst + skip, data);
        at += skip + data;
        dst += skip + data;
        size -= skip + data;
    }
    zero_own_host(dst, size);
}

static void copy_piece(struct piece *dst, const struct piece *src, size_t size)
{
    if (src->extent != NULL && dst->extent != NULL) {
        sim_extent_copy(dst->extent, dst->at, src->extent, src->at, size);
        sim_known_copy(&dst->extent->known, dst->at, &src->extent->known, src->at, size);
    } else if (src->extent != NULL && dst->direct != NULL) {
        read_to_host(dst->direct, src, size);
    } else if (src->direct != NULL && dst->extent != NULL) {
        sim_extent_write(dst->extent, dst->at, src->direct, size);
        sim_known_set(&dst->extent->known, dst->at, size, true);
    } else if (src->direct != NULL && dst->direct != NULL) {
        memmove(dst->direct, src->direct, size);
    } else if (dst->extent != NULL) {
        sim_extent_zero(dst->extent, dst->at, size);
        sim_known_set(&dst->extent->known, dst->at, size, false);
    } else if (dst->direct != NULL) {
        memset(dst->direct, 0, size);
    }
}

void sim_mem_copy(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
    if (!admit(dst, size)) {
        return;
    }
    while (size > 0) {
        struct piece to = piece_at(dst, size), from = piece_at(src, size);
        size_t piece = to.size < from.size ? to.size : from.size;

        copy_piece(&to, &from, piece);
        dst += piece;
        src += piece;
        size -= piece;
    }
}

static void fill_direct(char *dst, uint32_t pattern, unsigned int width, size_t size)
{
    if (width == 1) {
        memset(dst, (int)(pattern & 0xff), size);
        return;
    }
    for (size_t i = 0; i < size; i += width) {
        memcpy(dst + i, &pattern, width);
    }
}

void sim_mem_fill(CUdeviceptr dst, uint32_t pattern, unsigned int width, size_t size)
{
    if (pattern != 0 && !admit(dst, size)) {
        return;
    }
    while (size > 0) {
        struct piece piece = piece_at(dst, size);

        if (piece.extent != NULL) {
            sim_extent_fill(piece.extent, piece.at, pattern, width, piece.size);
            sim_known_set(&piece.extent->known, piece.at, piece.size, true);
        } else if (piece.direct != NULL) {
            fill_direct(piece.direct, pattern, width, piece.size);
        }
        dst += piece.size;
        size -= piece.size;
    }
}

SIM_EXPORT int spillway_sim_known(unsigned long long address, unsigned long long bytes)
{
    int is_known;

    sim_lock();
    is_known = sim_mem_is_known(address, bytes);
    sim_unlock();
    return is_known;
}
