/* Blocks: allocation, content, free. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chaos.h"
#include "errors.h"

enum { WORD = sizeof(uint32_t), PATTERN_STEP = 2654435761u % 1000003, RETRIES = 3 };

/* The variants for the default stream of each thread, which cuda.h declares only for programs that
 * are compiled for it. */
CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr *address, size_t bytes, CUstream stream);
CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream);
CUresult CUDAAPI cuMemsetD32Async_ptsz(CUdeviceptr address, unsigned int value, size_t count,
                                       CUstream stream);

CUstream any_stream(struct worker *worker)
{
    return worker->streams[draw(worker, STREAMS)];
}

/* ---- order ---- */

/* Waits on the host until all work with the block is complete. */
static bool await(struct block *block)
{
    if (block->written == NULL || ok(cuEventSynchronize(block->written), "cuEventSynchronize")) {
        return true;
    }
    block->lost = true;
    return false;
}

bool block_order(struct block *block, CUstream stream)
{
    if (block->lost) {
        return false;
    }
    return block->written == NULL ||
           ok(cuStreamWaitEvent(stream, block->written, 0), "cuStreamWaitEvent") || await(block);
}

void block_used(struct block *block, CUstream stream)
{
    if (block->written != NULL && ok(cuEventRecord(block->written, stream), "cuEventRecord")) {
        return;
    }
    for (int i = 0; i < RETRIES; i++) {
        if (ok(cuStreamSynchronize(stream), "cuStreamSynchronize")) {
            return;
        }
    }
    block->lost = true;
}

/* ---- allocation ---- */

static size_t draw_bytes(struct worker *worker)
{
    uint32_t log2 = (uint32_t)options.size_log2, most = log2 < 14 ? 4 : log2 - 8;

    log2 -= draw(worker, (uint32_t)options.spread < most ? (uint32_t)options.spread : most);
    return WORD * (1 + (size_t)draw(worker, (1u << log2) / WORD));
}

static bool allocate_mapped(struct block *block, size_t bytes)
{
    CUmemAllocationProp wanted = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = block->device}};
    CUmemAccessDesc access = {.location = wanted.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    size_t grain = 0;

    if (!ok(cuMemGetAllocationGranularity(&grain, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            "cuMemGetAllocationGranularity") ||
        grain == 0) {
        return false;
    }
    block->mapped_bytes = (bytes + grain - 1) / grain * grain;
    if (!ok(cuMemAddressReserve(&block->address, block->mapped_bytes, 0, 0, 0),
            "cuMemAddressReserve")) {
        return false;
    }
    if (!ok(cuMemCreate(&block->handle, block->mapped_bytes, &wanted, 0), "cuMemCreate")) {
        goto err_address;
    }
    if (!ok(cuMemMap(block->address, block->mapped_bytes, 0, block->handle, 0), "cuMemMap")) {
        goto err_handle;
    }
    if (!ok(cuMemSetAccess(block->address, block->mapped_bytes, &access, 1), "cuMemSetAccess")) {
        goto err_map;
    }
    return true;

err_map:
    (void)ok(cuMemUnmap(block->address, block->mapped_bytes), "cuMemUnmap");
err_handle:
    (void)ok(cuMemRelease(block->handle), "cuMemRelease");
err_address:
    (void)ok(cuMemAddressFree(block->address, block->mapped_bytes), "cuMemAddressFree");
    return false;
}

static bool allocate_rows(struct worker *worker, struct block *block, size_t *ret_bytes)
{
    size_t height = 1 + draw(worker, 20), width = WORD * (1 + *ret_bytes / WORD / height), pitch;

    if (!ok(cuMemAllocPitch(&block->address, &pitch, width, height, 4), "cuMemAllocPitch")) {
        return false;
    }
    if (pitch < width) {
        finding("a pitch of %zu bytes for rows of %zu", pitch, width);
    }
    *ret_bytes = pitch * (height - 1) + width;
    return true;
}

static bool allocate_ordered(struct worker *worker, struct block *block, size_t bytes,
                             CUstream stream)
{
    CUmemoryPool pool = worker->pool;

    if (block->kind == ORDERED && stream == CU_STREAM_PER_THREAD) {
        return ok(cuMemAllocAsync_ptsz(&block->address, bytes, NULL), "cuMemAllocAsync_ptsz");
    }
    if (block->kind == ORDERED) {
        return ok(cuMemAllocAsync(&block->address, bytes, stream), "cuMemAllocAsync");
    }
    if (block->kind == NAMED_POOL &&
        !ok(cuDeviceGetDefaultMemPool(&pool, block->device), "cuDeviceGetDefaultMemPool")) {
        return false;
    }
    return ok(cuMemAllocFromPoolAsync(&block->address, bytes, pool, stream),
              "cuMemAllocFromPoolAsync");
}

static enum kind draw_kind(struct worker *worker)
{
    static const enum kind kinds[] = {PLAIN,      PLAIN,    ORDERED, ORDERED, ORDERED, ORDERED,
                                      NAMED_POOL, OWN_POOL, PITCH,   MAPPED,  MANAGED};
    enum kind kind = kinds[draw(worker, sizeof(kinds) / sizeof(kinds[0]))];

    return kind == OWN_POOL && worker->pool == NULL ? ORDERED : kind;
}

static bool allocate(struct worker *worker, struct block *block, CUstream stream, size_t *bytes)
{
    switch (block->kind) {
    case PLAIN:
        return ok(cuMemAlloc(&block->address, *bytes), "cuMemAlloc");
    case PITCH:
        return allocate_rows(worker, block, bytes);
    case MANAGED:
        return ok(cuMemAllocManaged(&block->address, *bytes, CU_MEM_ATTACH_GLOBAL),
                  "cuMemAllocManaged");
    case MAPPED:
        return allocate_mapped(block, *bytes);
    default:
        return allocate_ordered(worker, block, *bytes, stream);
    }
}

bool block_allocate(struct worker *worker, struct block *ret_block)
{
    CUstream stream = any_stream(worker);
    size_t bytes = draw_bytes(worker);
    struct block block = {.kind = draw_kind(worker),
                          .device = worker->device,
                          .id = 1 + atomic_fetch_add(&program.ids, 1)};
    struct change first = {.value = block.id * 2654435761u};

    if (!allocate(worker, &block, stream, &bytes)) {
        return false;
    }
    if (block.address == 0) {
        finding("an allocation answered without an address");
        return false;
    }
    if (!ok(cuEventCreate(&block.written, CU_EVENT_DISABLE_TIMING), "cuEventCreate")) {
        block.written = NULL;
    }
    block.content.words = bytes / WORD;
    first.end = block.content.words;
    content_set(&block.content, 0, first.end, first.value, 0);
    block.content.known = block_submit(worker, &block, &first, stream);
    block_used(&block, stream);
    *ret_block = block;
    return true;
}

/* ---- free ---- */

static void free_mapped(struct block *block)
{
    if (!await(block)) {
        atomic_fetch_add(&program.losses, 1);
        return;
    }
    if (!ok(cuMemUnmap(block->address, block->mapped_bytes), "cuMemUnmap")) {
        atomic_fetch_add(&program.losses, 1);
        return;
    }
    if (!ok(cuMemRelease(block->handle), "cuMemRelease")) {
        atomic_fetch_add(&program.losses, 1);
    }
    (void)ok(cuMemAddressFree(block->address, block->mapped_bytes), "cuMemAddressFree");
}

static bool free_ordered(struct block *block, CUstream stream)
{
    if (stream == CU_STREAM_PER_THREAD) {
        return ok(cuMemFreeAsync_ptsz(block->address, NULL), "cuMemFreeAsync_ptsz");
    }
    return ok(cuMemFreeAsync(block->address, stream), "cuMemFreeAsync");
}

void block_free(struct worker *worker, struct block *block)
{
    bool waits = block->kind == MANAGED || block->device != worker->device || once_in(worker, 5);
    CUstream stream = any_stream(worker);
    bool freed = true;

    if (block->lost) {
        atomic_fetch_add(&program.losses, 1);
    } else if (block->kind == MAPPED) {
        free_mapped(block);
    } else if (waits || block->kind == PLAIN ? await(block) : block_order(block, stream)) {
        freed = waits || (block->kind == PLAIN && once_in(worker, 2))
                    ? await(block) && ok(cuMemFree(block->address), "cuMemFree")
                    : free_ordered(block, stream);
    } else {
        freed = false;
    }
    atomic_fetch_add(&program.losses, freed ? 0 : 1);
    if (block->written != NULL) {
        (void)ok(cuEventDestroy(block->written), "cuEventDestroy");
    }
    *block = (struct block){0};
}

/* ---- changes ---- */

struct change block_draw_change(struct worker *worker, const struct block *block)
{
    size_t words = block->content.words;
    bool whole =
        !block->content.known || !content_has_room(&block->content, 2) || once_in(worker, 4);
    size_t begin = whole ? 0 : draw(worker, (uint32_t)words);
    bool adds = block->content.known && worker->add != NULL && once_in(worker, 2);

    return (struct change){
        .adds = adds,
        .begin = begin,
        .end = whole ? words : begin + 1 + draw(worker, (uint32_t)(words - begin)),
        .value = adds ? 1 + draw(worker, 1000) : block->id * 7919u + draw(worker, 1u << 30),
    };
}

bool block_submit(struct worker *worker, const struct block *block, const struct change *change,
                  CUstream stream)
{
    CUdeviceptr address = block->address + change->begin * WORD;
    size_t words = change->end - change->begin;
    uint32_t value = change->value;
    void *arguments[] = {&address, &words, &value};

    if (change->adds) {
        return ok(cuLaunchKernel(worker->add, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL),
                  "cuLaunchKernel");
    }
    if (stream == CU_STREAM_PER_THREAD) {
        return ok(cuMemsetD32Async_ptsz(address, value, words, NULL), "cuMemsetD32Async_ptsz");
    }
    return ok(cuMemsetD32Async(address, value, words, stream), "cuMemsetD32Async");
}

void block_apply(struct block *block, const struct change *change)
{
    if (change->adds) {
        content_add(&block->content, change->begin, change->end, change->value);
    } else {
        content_set(&block->content, change->begin, change->end, change->value, 0);
    }
}

static bool write_change(struct worker *worker, struct block *block, CUstream *stream)
{
    struct change change = block_draw_change(worker, block);

    block_apply(block, &change);
    return block_submit(worker, block, &change, *stream);
}

/* Fills all words with the repetition of one or two bytes. */
static bool write_narrow(struct worker *worker, struct block *block, CUstream *stream)
{
    uint16_t value = (uint16_t)draw(worker, 1u << 16);
    size_t words = block->content.words;

    if (once_in(worker, 2)) {
        value = (uint16_t)((value & 0xff) * 0x101u);
        content_set(&block->content, 0, words, value * 0x10001u, 0);
        return ok(cuMemsetD8Async(block->address, (unsigned char)value, words * WORD, *stream),
                  "cuMemsetD8Async");
    }
    content_set(&block->content, 0, words, value * 0x10001u, 0);
    return ok(cuMemsetD16Async(block->address, value, words * 2, *stream), "cuMemsetD16Async");
}

/* Fills two rows of the block. */
static bool write_rows(struct worker *worker, struct block *block, CUstream *stream)
{
    size_t words = block->content.words, pitch = words / 2, width;
    uint32_t value = draw(worker, 1u << 31);

    if (pitch == 0 || !block->content.known || !content_has_room(&block->content, 4)) {
        return write_narrow(worker, block, stream);
    }
    width = 1 + draw(worker, (uint32_t)pitch);
    content_set(&block->content, 0, width, value, 0);
    content_set(&block->content, pitch, pitch + width, value, 0);
    return ok(cuMemsetD2D32Async(block->address, pitch * WORD, value, width, 2, *stream),
              "cuMemsetD2D32Async");
}

/* Copies words from the host, each of which is different. */
static bool write_from_host(struct worker *worker, struct block *block, CUstream *stream)
{
    size_t words = block->content.words;
    size_t count = words < BUFFER_WORDS ? words : BUFFER_WORDS;
    size_t begin = words > count ? draw(worker, (uint32_t)(words - count)) : 0;
    CUdeviceptr address = block->address + begin * WORD;

    if (!block->content.known || !content_has_room(&block->content, 2)) {
        if (count < words) {
            return write_narrow(worker, block, stream);
        }
    }
    content_set(&block->content, begin, begin + count, draw(worker, 1u << 31), PATTERN_STEP);
    content_words(&block->content, begin, count, worker->buffer);
    if (once_in(worker, 3)) {
        *stream = NULL; /* It may return before the device has the bytes. */
        return await(block) &&
               ok(cuMemcpyHtoD(address, worker->buffer, count * WORD), "cuMemcpyHtoD");
    }
    if (!ok(cuMemcpyHtoDAsync(address, worker->buffer, count * WORD, *stream),
            "cuMemcpyHtoDAsync")) {
        return false;
    }
    if (!ok(cuStreamSynchronize(*stream), "cuStreamSynchronize")) {
        block->lost = true; /* The buffer may still be read. */
        return false;
    }
    return true;
}

void block_write(struct worker *worker, struct block *block)
{
    static bool (*const ways[])(struct worker *, struct block *, CUstream *) = {
        write_change, write_change, write_change, write_narrow, write_rows, write_from_host};
    CUstream stream = any_stream(worker);
    bool written;

    if (block->device != worker->device || !block_order(block, stream)) {
        return;
    }
    written = ways[draw(worker, sizeof(ways) / sizeof(ways[0]))](worker, block, &stream);
    block->content.known = block->content.known && written;
    block_used(block, stream);
}

/* ---- copies ---- */

static bool copy_on(struct worker *worker, CUdeviceptr to, struct block *from, CUdeviceptr source,
                    size_t bytes, CUstream stream)
{
    if (from->device != worker->device) {
        return ok(cuMemcpyPeerAsync(to, worker->context, source, program.contexts[from->device],
                                    bytes, stream),
                  "cuMemcpyPeerAsync");
    }
    if (once_in(worker, 3)) {
        return ok(cuMemcpyAsync(to, source, bytes, stream), "cuMemcpyAsync");
    }
    return ok(cuMemcpyDtoDAsync(to, source, bytes, stream), "cuMemcpyDtoDAsync");
}

void block_copy(struct worker *worker, struct block *to, struct block *from)
{
    size_t words = to->content.words,
           most = from->content.words < words ? from->content.words : words;
    size_t count = once_in(worker, 2) ? most : 1 + draw(worker, (uint32_t)most);
    size_t begin = draw(worker, (uint32_t)(words - count + 1));
    size_t from_begin = draw(worker, (uint32_t)(from->content.words - count + 1));
    CUstream stream = any_stream(worker);
    bool copied;

    if (to->device != worker->device || !from->content.known ||
        (count < words && !to->content.known) ||
        !content_has_room(&to->content, from->content.count + 2) ||
        !content_has_room(&from->content, 2) || !block_order(to, stream) ||
        !block_order(from, stream)) {
        return;
    }
    copied = copy_on(worker, to->address + begin * WORD, from, from->address + from_begin * WORD,
                     count * WORD, stream);
    content_copy(&to->content, begin, &from->content, from_begin, count);
    to->content.known = copied;
    block_used(to, stream);
    if (from->device == worker->device) {
        block_used(from, stream);
    } else if (!ok(cuStreamSynchronize(stream), "cuStreamSynchronize")) {
        from->lost = true;
    }
}

/* ---- checks ---- */

/* True when the bytes are in the buffer. If it may be written later, the worker stops. */
static bool fetch(struct worker *worker, struct block *block, CUdeviceptr address, size_t bytes)
{
    CUstream stream = any_stream(worker);
    CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = address,
                          .srcPitch = bytes / 2,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = worker->buffer,
                          .dstPitch = bytes / 2,
                          .WidthInBytes = bytes / 2,
                          .Height = 2};
    CUresult result;

    if (block->device != worker->device || once_in(worker, 3)) {
        return await(block) && ok(cuMemcpyDtoH(worker->buffer, address, bytes), "cuMemcpyDtoH");
    }
    if (!block_order(block, stream)) {
        return false;
    }
    result = bytes % 8 == 0 && once_in(worker, 3)
                 ? cuMemcpy2DAsync(&rows, stream)
                 : cuMemcpyDtoHAsync(worker->buffer, address, bytes, stream);
    if (!ok(result, "copy to the host")) {
        return false;
    }
    for (int i = 0; i < RETRIES; i++) {
        if (ok(cuStreamSynchronize(stream), "cuStreamSynchronize")) {
            return true;
        }
    }
    block->lost = true;
    worker->stopped = true;
    return false;
}

void block_check(struct worker *worker, struct block *block)
{
    size_t words = block->content.words;
    size_t count = words < BUFFER_WORDS ? words : BUFFER_WORDS;
    size_t begin = words > count ? draw(worker, (uint32_t)(words - count + 1)) : 0;

    if (block->lost || !block->content.known) {
        return;
    }
    if (words > count && once_in(worker, 2)) {
        begin = once_in(worker, 2) ? 0 : words - count;
    }
    memset(worker->buffer, 0xee, count * WORD);
    if (!fetch(worker, block, block->address + begin * WORD, count * WORD)) {
        return;
    }
    content_words(&block->content, begin, count, worker->expected);
    for (size_t i = 0; i < count; i++) {
        if (worker->buffer[i] != worker->expected[i]) {
            finding("block %u (kind %d, device %d, %zu words at %#llx): word %zu is %#x instead "
                    "of %#x",
                    block->id, (int)block->kind, block->device, words,
                    (unsigned long long)block->address, begin + i, worker->buffer[i],
                    worker->expected[i]);
            block->content.known = false;
            return;
        }
    }
}
