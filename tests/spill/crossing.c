/* Copies and memsets of blocks that are partly on the host: each function by name, at the
 * beginning, in the middle and across the end of a granule, with right content.
 *
 *     crossing            all functions
 *     crossing NAME...    these
 *
 * A block has 4 granules. It prints the name of each function whose content was wrong, or that
 * failed, and exits with 1 then. Under spillway, a policy puts half of each block on the host. */
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { GRANULE = 2 * MIB, BYTES = 4 * GRANULE, PITCH = 4096 };

/* A rectangle or a row, in the blocks; and what the blocks hold, in memory of the host. */
struct part {
    size_t at, bytes;     /* offset and length of a row; a multiple of 4 */
    size_t height, depth; /* 1: one row */
};

static CUcontext context;
static CUstream stream;
static CUdeviceptr block, other;
static unsigned char *held, *other_held; /* the content that is expected */
static unsigned char *pinned, *pageable;
static unsigned turn;

static CUdeviceptr as_device(const void *host)
{
    return (CUdeviceptr)(uintptr_t)host;
}

static unsigned char *scratch(void)
{
    return turn % 2 == 0 ? pinned : pageable;
}

/* Fills memory of the host with bytes that differ from turn to turn. */
static void renew(unsigned char *host)
{
    uint32_t *words = (uint32_t *)host;

    turn++;
    for (size_t i = 0; i < BYTES / 4; i++) {
        words[i] = (uint32_t)i * 2654435761u + turn;
    }
}

static size_t row_of(const struct part *part, size_t z, size_t y)
{
    return part->at + (z * part->height + y) * PITCH;
}

/* Copies the rows of a part between buffers of the same form. */
static void expect_copy(unsigned char *to, const unsigned char *from, const struct part *part)
{
    for (size_t z = 0; z < part->depth; z++) {
        for (size_t y = 0; y < part->height; y++) {
            memcpy(to + row_of(part, z, y), from + row_of(part, z, y), part->bytes);
        }
    }
}

/* ---- copies: each reads from `source` and writes to the block, or the other way round ---- */

#define TO(part)   (block + (part)->at)
#define FROM(part) (other + (part)->at)

/* Into the block, from memory of the host. */
#define UPLOAD(name, call)                                                                         \
    static CUresult name(const struct part *part)                                                  \
    {                                                                                              \
        unsigned char *host = scratch();                                                           \
        CUresult result;                                                                           \
                                                                                                   \
        renew(host);                                                                               \
        expect_copy(held, host, part);                                                             \
        result = call;                                                                             \
        MUST(cuStreamSynchronize(stream)); /* the buffer is used again */                          \
        return result;                                                                             \
    }
/* Out of the block. What arrives is compared at once. */
#define DOWNLOAD(name, call)                                                                       \
    static CUresult name(const struct part *part)                                                  \
    {                                                                                              \
        unsigned char *host = scratch();                                                           \
        CUresult result;                                                                           \
                                                                                                   \
        renew(host);                                                                               \
        result = call;                                                                             \
        MUST(cuStreamSynchronize(stream));                                                         \
        for (size_t z = 0; z < part->depth; z++) {                                                 \
            for (size_t y = 0; y < part->height; y++) {                                            \
                size_t row = row_of(part, z, y);                                                   \
                                                                                                   \
                if (memcmp(host + row, held + row, part->bytes) != 0) {                            \
                    return CUDA_ERROR_UNKNOWN;                                                     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return result;                                                                             \
    }
/* From the other block. */
#define ACROSS(name, call)                                                                         \
    static CUresult name(const struct part *part)                                                  \
    {                                                                                              \
        expect_copy(held, other_held, part);                                                       \
        return call;                                                                               \
    }

#define HOST(part) (host + (part)->at)

UPLOAD(HtoD, cuMemcpyHtoD(TO(part), HOST(part), part->bytes))
UPLOAD(HtoDAsync, cuMemcpyHtoDAsync(TO(part), HOST(part), part->bytes, stream))
UPLOAD(Memcpy, cuMemcpy(TO(part), as_device(HOST(part)), part->bytes))
UPLOAD(MemcpyAsync, cuMemcpyAsync(TO(part), as_device(HOST(part)), part->bytes, stream))
DOWNLOAD(DtoH, cuMemcpyDtoH(HOST(part), TO(part), part->bytes))
DOWNLOAD(DtoHAsync, cuMemcpyDtoHAsync(HOST(part), TO(part), part->bytes, stream))
DOWNLOAD(MemcpyBack, cuMemcpy(as_device(HOST(part)), TO(part), part->bytes))
DOWNLOAD(MemcpyBackAsync, cuMemcpyAsync(as_device(HOST(part)), TO(part), part->bytes, stream))
ACROSS(DtoD, cuMemcpyDtoD(TO(part), FROM(part), part->bytes))
ACROSS(DtoDAsync, cuMemcpyDtoDAsync(TO(part), FROM(part), part->bytes, stream))
ACROSS(Peer, cuMemcpyPeer(TO(part), context, FROM(part), context, part->bytes))
ACROSS(PeerAsync, cuMemcpyPeerAsync(TO(part), context, FROM(part), context, part->bytes, stream))

/* Between different offsets, so that boundaries of both sides count. */
static CUresult Shifted(const struct part *part)
{
    size_t bytes = part->bytes / 2;

    memcpy(held + part->at, other_held + part->at + part->bytes - bytes, bytes);
    return cuMemcpyDtoDAsync(TO(part), FROM(part) + part->bytes - bytes, bytes, stream);
}

static CUDA_MEMCPY2D rows(const struct part *part)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = other,
                           .srcXInBytes = part->at % PITCH,
                           .srcY = part->at / PITCH,
                           .srcPitch = PITCH,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = block,
                           .dstXInBytes = part->at % PITCH,
                           .dstY = part->at / PITCH,
                           .dstPitch = PITCH,
                           .WidthInBytes = part->bytes,
                           .Height = part->height * part->depth};
}

static CUresult Rows(const struct part *part)
{
    const CUDA_MEMCPY2D copy = rows(part);

    expect_copy(held, other_held, part);
    return cuMemcpy2D(&copy);
}

static CUresult RowsUnaligned(const struct part *part)
{
    const CUDA_MEMCPY2D copy = rows(part);

    expect_copy(held, other_held, part);
    return cuMemcpy2DUnaligned(&copy);
}

/* From memory of the host. */
static CUresult RowsAsync(const struct part *part)
{
    unsigned char *host = scratch();
    CUDA_MEMCPY2D copy = rows(part);
    CUresult result;

    renew(host);
    expect_copy(held, host, part);
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host;
    result = cuMemcpy2DAsync(&copy, stream);
    MUST(cuStreamSynchronize(stream));
    return result;
}

#define VOLUME(part)                                                                               \
    .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = FROM(part), .srcPitch = PITCH,             \
    .srcHeight = (part)->height, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = TO(part),     \
    .dstPitch = PITCH, .dstHeight = (part)->height, .WidthInBytes = (part)->bytes,                 \
    .Height = (part)->height, .Depth = (part)->depth

static CUresult Volume(const struct part *part)
{
    const CUDA_MEMCPY3D copy = {VOLUME(part)};

    expect_copy(held, other_held, part);
    return cuMemcpy3D(&copy);
}

static CUresult VolumeAsync(const struct part *part)
{
    const CUDA_MEMCPY3D copy = {VOLUME(part)};

    expect_copy(held, other_held, part);
    return cuMemcpy3DAsync(&copy, stream);
}

static CUresult VolumePeer(const struct part *part)
{
    const CUDA_MEMCPY3D_PEER copy = {VOLUME(part), .srcContext = context, .dstContext = context};

    expect_copy(held, other_held, part);
    return cuMemcpy3DPeer(&copy);
}

static CUresult VolumePeerAsync(const struct part *part)
{
    const CUDA_MEMCPY3D_PEER copy = {VOLUME(part), .srcContext = context, .dstContext = context};

    expect_copy(held, other_held, part);
    return cuMemcpy3DPeerAsync(&copy, stream);
}

/* ---- batches: the part, and what lies before and behind it, as copies of their own ---- */

/* As they were before CUDA 13. */
typedef CUresult batch_function(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                                CUmemcpyAttributes *attributes, size_t *firsts,
                                size_t attribute_count, size_t *ret_failed, CUstream on);
typedef CUresult batch_function_3d(size_t count, CUDA_MEMCPY3D_BATCH_OP *copies, size_t *ret_failed,
                                   unsigned long long flags, CUstream on);

static void *old_function(const char *name)
{
    CUdriverProcAddressQueryResult status;
    void *found = NULL;

    MUST(cuGetProcAddress(name, &found, 12080, 0, &status));
    return found;
}

struct batch {
    CUdeviceptr to[3], from[3];
    size_t bytes[3], firsts[2], count;
    CUmemcpyAttributes attributes[2];
};

static struct batch batch_of(const struct part *part)
{
    struct batch batch = {.to = {TO(part), block, TO(part) + part->bytes},
                          .from = {FROM(part), other, FROM(part) + part->bytes},
                          .bytes = {part->bytes, part->at, BYTES - part->at - part->bytes},
                          .firsts = {0, 1},
                          .count = part->at == 0 ? 1 : 3,
                          .attributes = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
                                         {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY}}};

    expect_copy(held, other_held, part->at == 0 ? part : &(struct part){0, BYTES, 1, 1});
    return batch;
}

static CUresult Batch(const struct part *part)
{
    struct batch batch = batch_of(part);

    return cuMemcpyBatchAsync(batch.to, batch.from, batch.bytes, batch.count, batch.attributes,
                              batch.firsts, batch.count == 1 ? 1 : 2, stream);
}

static CUresult BatchOld(const struct part *part)
{
    batch_function *call = (batch_function *)(uintptr_t)old_function("cuMemcpyBatchAsync");
    struct batch batch = batch_of(part);
    size_t failed = SIZE_MAX;

    return call(batch.to, batch.from, batch.bytes, batch.count, batch.attributes, batch.firsts,
                batch.count == 1 ? 1 : 2, &failed, stream);
}

/* The second copy fails: its index is told. */
static CUresult BatchFails(const struct part *part)
{
    batch_function *call = (batch_function *)(uintptr_t)old_function("cuMemcpyBatchAsync");
    struct batch batch = batch_of(&(struct part){part->at, part->bytes, 1, 1});
    size_t failed = SIZE_MAX;
    CUresult result;

    expect_copy(held, other_held, part);
    batch.from[1] = 0;
    batch.bytes[1] = 4;
    result = call(batch.to, batch.from, batch.bytes, 2, batch.attributes, batch.firsts, 2, &failed,
                  stream);
    MUST(cuMemcpyDtoD(block, other, GRANULE)); /* what else batch_of expects */
    for (size_t at = GRANULE; at < BYTES; at += GRANULE) {
        MUST(cuMemcpyDtoD(block + at, other + at, GRANULE));
    }
    memcpy(held, other_held, BYTES);
    return result == CUDA_ERROR_INVALID_VALUE && failed == 1 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

static CUDA_MEMCPY3D_BATCH_OP volume_of(const struct part *part)
{
    CUDA_MEMCPY3D_BATCH_OP copy = {.extent = {part->bytes, part->height, part->depth}};

    copy.src.type = copy.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    copy.src.op.ptr.ptr = FROM(part);
    copy.dst.op.ptr.ptr = TO(part);
    copy.src.op.ptr.rowLength = copy.dst.op.ptr.rowLength = PITCH;
    copy.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    expect_copy(held, other_held, part);
    return copy;
}

static CUresult BatchVolumes(const struct part *part)
{
    CUDA_MEMCPY3D_BATCH_OP copy = volume_of(part);

    return cuMemcpy3DBatchAsync(1, &copy, 0, stream);
}

static CUresult BatchVolumesOld(const struct part *part)
{
    batch_function_3d *call = (batch_function_3d *)(uintptr_t)old_function("cuMemcpy3DBatchAsync");
    CUDA_MEMCPY3D_BATCH_OP copy = volume_of(part);
    size_t failed = SIZE_MAX;

    return call(1, &copy, &failed, 0, stream);
}

/* ---- memsets ---- */

/* Writes `bytes` times the low bytes of a value over a part. */
static void expect_fill(const struct part *part, uint32_t value, size_t bytes)
{
    for (size_t z = 0; z < part->depth; z++) {
        for (size_t y = 0; y < part->height; y++) {
            for (size_t x = 0; x < part->bytes; x += bytes) {
                memcpy(held + row_of(part, z, y) + x, &value, bytes);
            }
        }
    }
}

#define FILL(name, bytes, value, call)                                                             \
    static CUresult name(const struct part *part)                                                  \
    {                                                                                              \
        turn++;                                                                                    \
        expect_fill(part, value, bytes);                                                           \
        return call;                                                                               \
    }
#define ROWS(part) ((part)->height * (part)->depth)

FILL(D8, 1, (uint8_t)turn, cuMemsetD8(TO(part), (uint8_t)turn, part->bytes))
FILL(D16, 2, (uint16_t)(turn * 257 + 1),
     cuMemsetD16(TO(part), (uint16_t)(turn * 257 + 1), part->bytes / 2))
FILL(D32, 4, turn * 65537 + 1, cuMemsetD32(TO(part), turn * 65537 + 1, part->bytes / 4))
FILL(D8Async, 1, (uint8_t)turn, cuMemsetD8Async(TO(part), (uint8_t)turn, part->bytes, stream))
FILL(D16Async, 2, (uint16_t)(turn * 257 + 1),
     cuMemsetD16Async(TO(part), (uint16_t)(turn * 257 + 1), part->bytes / 2, stream))
FILL(D32Async, 4, turn * 65537 + 1,
     cuMemsetD32Async(TO(part), turn * 65537 + 1, part->bytes / 4, stream))
FILL(D2D8, 1, (uint8_t)turn, cuMemsetD2D8(TO(part), PITCH, (uint8_t)turn, part->bytes, ROWS(part)))
FILL(D2D16, 2, (uint16_t)(turn * 257 + 1),
     cuMemsetD2D16(TO(part), PITCH, (uint16_t)(turn * 257 + 1), part->bytes / 2, ROWS(part)))
FILL(D2D32, 4, turn * 65537 + 1,
     cuMemsetD2D32(TO(part), PITCH, turn * 65537 + 1, part->bytes / 4, ROWS(part)))
FILL(D2D8Async, 1, (uint8_t)turn,
     cuMemsetD2D8Async(TO(part), PITCH, (uint8_t)turn, part->bytes, ROWS(part), stream))
FILL(D2D16Async, 2, (uint16_t)(turn * 257 + 1),
     cuMemsetD2D16Async(TO(part), PITCH, (uint16_t)(turn * 257 + 1), part->bytes / 2, ROWS(part),
                        stream))
FILL(D2D32Async, 4, turn * 65537 + 1,
     cuMemsetD2D32Async(TO(part), PITCH, turn * 65537 + 1, part->bytes / 4, ROWS(part), stream))

/* ---- capture ---- */

/* A graph of a copy and a fill, launched twice. */
static CUresult Captured(const struct part *part)
{
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;
    CUresult result;

    expect_copy(held, other_held, part);
    memset(held + part->at, 0x77, part->bytes / 2);
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    result = cuMemcpyDtoDAsync(TO(part), FROM(part), part->bytes, stream);
    if (result == CUDA_SUCCESS) {
        result = cuMemsetD8Async(TO(part), 0x77, part->bytes / 2, stream);
    }
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphInstantiate(&exec, graph, 0));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
    return result;
}

/* ---- the program ---- */

#define ROW(name)                                                                                  \
    {                                                                                              \
#        name, name, false                                                                         \
    }
#define MANY(name)                                                                                 \
    {                                                                                              \
#        name, name, true                                                                          \
    }

static const struct {
    const char *name;
    CUresult (*call)(const struct part *part);
    bool rows; /* of parts that have several */
} functions[] = {
    ROW(HtoD),
    ROW(HtoDAsync),
    ROW(Memcpy),
    ROW(MemcpyAsync),
    ROW(DtoH),
    ROW(DtoHAsync),
    ROW(MemcpyBack),
    ROW(MemcpyBackAsync),
    ROW(DtoD),
    ROW(DtoDAsync),
    ROW(Peer),
    ROW(PeerAsync),
    ROW(Shifted),
    MANY(Rows),
    MANY(RowsUnaligned),
    MANY(RowsAsync),
    MANY(Volume),
    MANY(VolumeAsync),
    MANY(VolumePeer),
    MANY(VolumePeerAsync),
    ROW(Batch),
    ROW(BatchOld),
    ROW(BatchFails),
    MANY(BatchVolumes),
    MANY(BatchVolumesOld),
    ROW(Captured),
    ROW(D8),
    ROW(D16),
    ROW(D32),
    ROW(D8Async),
    ROW(D16Async),
    ROW(D32Async),
    MANY(D2D8),
    MANY(D2D16),
    MANY(D2D32),
    MANY(D2D8Async),
    MANY(D2D16Async),
    MANY(D2D32Async),
};

/* Rows: inside a granule, up to a boundary, across one, across all. Rectangles: rows that cross,
 * boundaries between rows, and volumes. */
static const struct part row_parts[] = {
    {64, 4096, 1, 1},        {GRANULE - 4096, 4096, 1, 1},
    {GRANULE - 8, 16, 1, 1}, {GRANULE + 4, 2 * GRANULE, 1, 1},
    {0, BYTES, 1, 1},
};
static const struct part rows_parts[] = {
    {16, 2048, 7, 1},
    {GRANULE - 3 * PITCH - 1024, 2048, 8, 1},
    {GRANULE - 8 * PITCH, PITCH, 16, 1},
    {GRANULE - 20 * PITCH - 64, 128, 10, 4},
    {0, PITCH, BYTES / PITCH / 4, 4},
};

/* True when the blocks hold what they should. */
static bool is_right(void)
{
    static unsigned char *got;

    got = got != NULL ? got : malloc(BYTES);
    /* A granule at a time, which crosses nothing. */
    for (size_t at = 0; at < BYTES; at += GRANULE) {
        MUST(cuMemcpyDtoH(got + at, block + at, GRANULE));
    }
    return memcmp(got, held, BYTES) == 0;
}

/* Puts content into a block, a granule at a time. */
static void put(CUdeviceptr to, unsigned char *content)
{
    renew(content);
    for (size_t at = 0; at < BYTES; at += GRANULE) {
        MUST(cuMemcpyHtoD(to + at, content + at, GRANULE));
    }
}

static bool is_named(const char *name, int argc, char **argv)
{
    bool found = argc == 1;

    for (int i = 1; i < argc; i++) {
        found |= strcmp(name, argv[i]) == 0;
    }
    return found;
}

/* Calls one function for one part. */
static bool passes(size_t function, const struct part *part)
{
    CUresult result = functions[function].call(part);
    bool right;

    MUST(cuCtxSynchronize());
    right = is_right();
    if (result != CUDA_SUCCESS || !right) {
        printf("%s of %zu at %#zx: %d%s\n", functions[function].name, part->bytes, part->at,
               (int)result, right ? "" : ", wrong");
        put(block, held);
    }
    return result == CUDA_SUCCESS && right;
}

int main(int argc, char **argv)
{
    int status = 0;
    CUmodule module;

    context = enter_device(0, &module);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&block, BYTES));
    MUST(cuMemAlloc(&other, BYTES));
    held = malloc(BYTES);
    other_held = malloc(BYTES);
    pageable = malloc(BYTES);
    MUST(cuMemHostAlloc((void **)&pinned, BYTES, 0));
    put(block, held);
    put(other, other_held);
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        const struct part *parts = functions[i].rows ? rows_parts : row_parts;

        for (size_t k = 0; is_named(functions[i].name, argc, argv) && k < 5; k++) {
            status |= !passes(i, &parts[k]);
        }
    }
    MUST(cuMemFree(block));
    MUST(cuMemFree(other));
    return status;
}
