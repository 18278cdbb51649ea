/* Copies something from the host to a global of a module, where any kernel may find it. spillway
 * says so when addresses of its blocks may be among what is copied.
 *
 *     carries WAY      one of the names in `ways`
 *
 * Made for a device of 64 MiB. Exit 0 when the copies were made. */
#include <stddef.h>
#include <string.h>

#include "common.h"

enum { BLOCKS = 10, WORDS = 2 * MIB, TABLE_WORDS = 1 << 14, CHUNK_WORDS = 2048 };

static CUdeviceptr blocks[BLOCKS], table;
static CUdeviceptr words[TABLE_WORDS]; /* on the host; none is an address at first */
static CUstream stream;

/* More memory than the device has: from now on spillway notes what is used. */
static void fill_device(void)
{
    CUmodule module;

    (void)enter_device(0, &module);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < BLOCKS; i++) {
        (void)new_block(&blocks[i], i, WORDS, stream);
    }
    MUST(cuStreamSynchronize(stream));
}

static void find_table(void)
{
    static const char ptx[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                              ".visible .global .align 8 .b64 table[16384];\n";
    CUmodule module;
    size_t bytes;

    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetGlobal(&table, &bytes, module, "table"));
    MUST(bytes != sizeof(words));
}

static void copy(size_t first, size_t bytes)
{
    MUST(cuMemcpyHtoDAsync(table + first * sizeof(words[0]), &words[first], bytes, stream));
}

static void word(void)
{
    words[0] = blocks[0];
    copy(0, sizeof(words[0]));
}

static void half_word(void)
{
    words[0] = blocks[0];
    copy(0, 4);
}

/* The last word of a copy that is looked at in several pieces. */
static void last_word(void)
{
    words[3 * CHUNK_WORDS + 1] = blocks[BLOCKS - 1];
    copy(0, (3 * CHUNK_WORDS + 2) * sizeof(words[0]));
}

/* It is behind the end of what is copied. */
static void next_word(void)
{
    words[CHUNK_WORDS + 1] = blocks[0];
    copy(0, (CHUNK_WORDS + 1) * sizeof(words[0]));
}

/* It lies across two words on the device, so it is none there. */
static void across_words(void)
{
    memcpy((char *)words + 4, &blocks[0], sizeof(blocks[0]));
    MUST(cuMemcpyHtoDAsync(table, words, 2 * sizeof(words[0]), stream));
}

/* It lies across two words on the host only. */
static void other_alignment(void)
{
    memcpy((char *)words + 4, &blocks[0], sizeof(blocks[0]));
    MUST(cuMemcpyHtoDAsync(table + 4, words, 12, stream));
}

/* Words with the bits of an address that are no block. */
static void no_block(void)
{
    words[0] = blocks[0] + (UINT64_C(1) << 56);
    words[1] = blocks[0] & UINT32_MAX;
    words[2] = (CUdeviceptr)(uintptr_t)words;
    copy(0, 3 * sizeof(words[0]));
}

static void batch(void)
{
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CUdeviceptr to[2] = {table, table + 64}, from[2];
    size_t bytes[2] = {8, 8}, index = 0;

    from[0] = (CUdeviceptr)(uintptr_t)&words[0];
    from[1] = (CUdeviceptr)(uintptr_t)&words[8];
    words[8] = blocks[1];
    MUST(cuMemcpyBatchAsync(to, from, bytes, 2, &attributes, &index, 1, stream));
}

static CUDA_MEMCPY2D rows_of(size_t width, size_t height)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = words,
                           .srcPitch = 32,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = table,
                           .dstPitch = 32,
                           .WidthInBytes = width,
                           .Height = height};
}

/* In the second row. */
static void rows(void)
{
    const CUDA_MEMCPY2D copy = rows_of(16, 2);

    words[5] = blocks[0];
    MUST(cuMemcpy2DAsync(&copy, stream));
}

/* Between the rows. */
static void between_rows(void)
{
    const CUDA_MEMCPY2D copy = rows_of(16, 2);

    words[2] = words[6] = blocks[0];
    MUST(cuMemcpy2DAsync(&copy, stream));
}

/* Rows that are shorter than a word may make up words. */
static void narrow_rows(void)
{
    const CUDA_MEMCPY2D copy = rows_of(4, 2);

    MUST(cuMemcpy2DAsync(&copy, stream));
}

static void no_rows(void)
{
    const CUDA_MEMCPY2D copy = rows_of(4, 0);

    (void)cuMemcpy2DAsync(&copy, stream);
}

/* In the second row of the second slice. */
static void slices(void)
{
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = words,
                                .srcPitch = 32,
                                .srcHeight = 4,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = table,
                                .dstPitch = 32,
                                .dstHeight = 4,
                                .WidthInBytes = 8,
                                .Height = 2,
                                .Depth = 2};

    words[16 + 4] = blocks[0];
    MUST(cuMemcpy3DAsync(&copy, stream));
}

static const struct {
    const char *name;
    void (*make)(void);
} ways[] = {
    {"word", word},
    {"half word", half_word},
    {"last word", last_word},
    {"next word", next_word},
    {"across words", across_words},
    {"other alignment", other_alignment},
    {"no block", no_block},
    {"batch", batch},
    {"rows", rows},
    {"between rows", between_rows},
    {"narrow rows", narrow_rows},
    {"no rows", no_rows},
    {"slices", slices},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(argv[1], ways[i].name) == 0) {
            fill_device();
            find_table();
            ways[i].make();
            MUST(cuStreamSynchronize(stream));
            puts("ok");
            return 0;
        }
    }
    return 2;
}
