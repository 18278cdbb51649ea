/* Copies and memsets over the boundary between a device chunk and a host chunk. Their result is
 * read by a kernel, which reaches either tier word by word, and compared on the host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "memory.h"
#include "sections.h"

#define SPAN  (128 * MIB)    /* half on the device, half on the host */
#define GUARD ((size_t)4096) /* bytes on either side that must not change */

static struct {
    CUdeviceptr range;     /* the first half is a device chunk, the second a host chunk */
    CUdeviceptr plain;     /* device memory of the same size: the other end of DtoD */
    CUdeviceptr window;    /* device memory into which a kernel copies what is looked at */
    unsigned char *memory; /* the program's side, pageable or page-locked */
    unsigned char *seen;   /* page-locked: what is there after the copy */
    bool locked;
} test;

/* One copy: which bytes of the range, and what to call it. */
struct piece {
    size_t begin;
    size_t bytes;
    const char *kind;
    char subject[96];
};

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 2654435761u >> 11 ^ i);
}

/* Fills the piece and its guards with `value`, by a kernel. */
static void fill(const struct piece *piece, uint32_t value)
{
    size_t begin = (piece->begin - GUARD) & ~(size_t)3;
    size_t end = piece->begin + piece->bytes + GUARD;

    kernels_fill(test.range + begin, (end - begin) / 4, value, NULL);
    MUST(cuCtxSynchronize());
}

/* Reads the piece and its guards; the result begins GUARD bytes before the piece. */
static const unsigned char *look(const struct piece *piece)
{
    size_t begin = (piece->begin - GUARD) & ~(size_t)3;
    size_t words = (piece->bytes + 2 * GUARD + 8) / 4;

    kernels_copy(test.window, test.range + begin, words, NULL);
    MUST(cuMemcpyDtoH(test.seen, test.window, words * 4));
    return test.seen + (piece->begin - GUARD - begin);
}

/* Bytes of the piece that differ from the pattern (or from a constant), and of its guards. */
static size_t count_wrong(const struct piece *piece, int constant)
{
    const unsigned char *seen = look(piece);
    size_t wrong = 0;

    for (size_t i = 0; i < piece->bytes; i++) {
        wrong += seen[GUARD + i] != (constant < 0 ? pattern(i) : (unsigned char)constant);
    }
    for (size_t i = 0; i < GUARD - 8; i++) {
        wrong += seen[i] != 0x11 || seen[GUARD + piece->bytes + i] != 0x11;
    }
    return wrong;
}

static void judge(const struct piece *piece, CUresult result, size_t wrong)
{
    char detail[64] = "right";

    if (result != CUDA_SUCCESS) {
        probe_note("failed", piece->subject, "%s", probe_error(result));
        return;
    }
    if (wrong > 0) {
        snprintf(detail, sizeof(detail), "%zu bytes differ", wrong);
    }
    probe_verdict(wrong == 0, piece->subject, detail);
}

/* The result of a call and of waiting for it. */
static CUresult finished(CUresult result)
{
    CUresult after = cuCtxSynchronize();

    return result != CUDA_SUCCESS ? result : after;
}

static void write_pattern(unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        memory[i] = pattern(i);
    }
}

static void copy_in(struct piece *piece)
{
    CUdeviceptr to = test.range + piece->begin;
    CUresult result;

    fill(piece, 0x11111111);
    write_pattern(test.memory, piece->bytes);
    if (strcmp(piece->kind, "any") == 0) {
        result = cuMemcpyAsync(to, (CUdeviceptr)(uintptr_t)test.memory, piece->bytes, NULL);
    } else if (strcmp(piece->kind, "DtoD") == 0) {
        MUST(cuMemcpyHtoD(test.plain, test.memory, piece->bytes));
        result = cuMemcpyDtoDAsync(to, test.plain, piece->bytes, NULL);
    } else {
        result = cuMemcpyHtoDAsync(to, test.memory, piece->bytes, NULL);
    }
    result = finished(result);
    judge(piece, result, result == CUDA_SUCCESS ? count_wrong(piece, -1) : 0);
}

/* The pattern is brought in by a kernel, and compared in the program's memory. */
static void copy_out(struct piece *piece)
{
    size_t begin = piece->begin & ~(size_t)3;
    size_t words = (piece->bytes + 8) / 4;
    CUdeviceptr from = test.range + piece->begin;
    CUresult result;
    size_t wrong = 0;

    memset(test.seen, 0, words * 4);
    write_pattern(test.seen + (piece->begin - begin), piece->bytes);
    MUST(cuMemcpyHtoD(test.window, test.seen, words * 4));
    kernels_copy(test.range + begin, test.window, words, NULL);
    MUST(cuCtxSynchronize());
    memset(test.memory, 0xee, piece->bytes);
    if (strcmp(piece->kind, "any") == 0) {
        result = cuMemcpyAsync((CUdeviceptr)(uintptr_t)test.memory, from, piece->bytes, NULL);
    } else if (strcmp(piece->kind, "DtoD") == 0) {
        result = cuMemcpyDtoDAsync(test.plain, from, piece->bytes, NULL);
    } else {
        result = cuMemcpyDtoHAsync(test.memory, from, piece->bytes, NULL);
    }
    result = finished(result);
    if (result == CUDA_SUCCESS && strcmp(piece->kind, "DtoD") == 0) {
        MUST(cuMemcpyDtoH(test.memory, test.plain, piece->bytes));
    }
    for (size_t i = 0; i < piece->bytes && result == CUDA_SUCCESS; i++) {
        wrong += test.memory[i] != pattern(i);
    }
    judge(piece, result, wrong);
}

static void set(struct piece *piece)
{
    CUdeviceptr to = test.range + piece->begin;

    fill(piece, 0x11111111);
    CUresult result = finished(cuMemsetD8Async(to, 0xab, piece->bytes, NULL));
    judge(piece, result, result == CUDA_SUCCESS ? count_wrong(piece, 0xab) : 0);
}

/* Rows of 64 KiB, out of memory without gaps. */
static void copy_rows(struct piece *piece)
{
    size_t width = piece->bytes < 65536 ? piece->bytes : 65536;
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_HOST,
        .srcHost = test.memory,
        .srcPitch = width,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = test.range + piece->begin,
        .dstPitch = width,
        .WidthInBytes = width,
        .Height = piece->bytes / width,
    };

    fill(piece, 0x11111111);
    write_pattern(test.memory, piece->bytes);
    CUresult result = finished(cuMemcpy2D(&copy));
    judge(piece, result, result == CUDA_SUCCESS ? count_wrong(piece, -1) : 0);
}

static void try_piece(const char *kind, bool in, size_t bytes, int place)
{
    static const char *const places[] = {"on the device", "on the host", "crossing"};
    static const size_t anchors[] = {SPAN / 4, SPAN * 3 / 4, SPAN / 2};
    struct piece piece = {.begin = anchors[place] - bytes / 2, .bytes = bytes, .kind = kind};
    bool has_memory = strcmp(kind, "DtoD") != 0 && strcmp(kind, "memset") != 0;

    snprintf(piece.subject, sizeof(piece.subject), "%s%s, %s%zu bytes, %s", kind,
             strcmp(kind, "any") == 0 || strcmp(kind, "DtoD") == 0 ? (in ? " in" : " out") : "",
             !has_memory   ? ""
             : test.locked ? "page-locked, "
                           : "pageable, ",
             bytes, places[place]);
    if (strcmp(kind, "memset") == 0) {
        set(&piece);
    } else if (strcmp(kind, "2D") == 0) {
        copy_rows(&piece);
    } else if (in) {
        copy_in(&piece);
    } else {
        copy_out(&piece);
    }
}

static void try_kind(const char *kind, size_t largest)
{
    const size_t sizes[] = {4, 64 << 10, largest};
    bool both = strcmp(kind, "any") == 0 || strcmp(kind, "DtoD") == 0;

    /* What crosses comes last: an error of the device ends the process. */
    for (int place = 0; place < 3; place++) {
        for (int size = 0; size < 3; size++) {
            if (strcmp(kind, "DtoH") != 0) {
                try_piece(kind, true, sizes[size], place);
            }
            if (both || strcmp(kind, "DtoH") == 0) {
                try_piece(kind, false, sizes[size], place);
            }
        }
    }
}

void section_crossing(const char *argument)
{
    static const enum tier tiers[] = {ON_DEVICE, ON_HOST};
    const size_t largest = probe.tiny ? MIB : 48 * MIB;
    const char *kind = argument == NULL ? "HtoD" : argument;

    if (!memory_find_host()) {
        return;
    }
    test.range = memory_new_range(tiers, 2, SPAN / 2, 2);
    MUST(cuMemAlloc(&test.plain, SPAN));
    MUST(cuMemAlloc(&test.window, SPAN));
    MUST(cuMemHostAlloc((void **)&test.seen, SPAN, 0));
    test.memory = malloc(SPAN);
    if (test.memory == NULL) {
        probe_note("failed", "malloc", "no memory");
        exit(1);
    }
    try_kind(kind, largest);
    if (strcmp(kind, "DtoD") != 0 && strcmp(kind, "memset") != 0) {
        free(test.memory);
        MUST(cuMemHostAlloc((void **)&test.memory, SPAN, 0));
        test.locked = true;
        try_kind(kind, largest);
    }
}
