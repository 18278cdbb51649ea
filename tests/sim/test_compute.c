/* Kernels that are recognised and computed. With any arguments nothing is read or written beyond
 * the memory that the device has, and the driver goes on; with those of PyTorch the results are
 * right. */
#include "check.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "sim/driver/core/control.h"

enum { KERNELS = 128, PARAMS = 16, ARGUMENT_BYTES = 8192, ROUNDS = 400 };
#define MEMORY ((size_t)1 << 20)

static struct kernel {
    char name[2048];
    size_t sizes[PARAMS], offsets[PARAMS], params, bytes;
    CUfunction function;
} kernels[KERNELS];

static size_t kernel_count;
static unsigned int seed = 20261124;
static CUdeviceptr memory;

static void read_params(struct kernel *kernel, char *text)
{
    for (char *word = strtok(text, " \n"); word != NULL; word = strtok(NULL, " \n")) {
        size_t number = kernel->params++;

        assert_true(number < PARAMS);
        assert_int_equal(sscanf(word, "%zu@%zu", &kernel->sizes[number], &kernel->offsets[number]),
                         2);
        kernel->bytes = kernel->offsets[number] + kernel->sizes[number];
    }
    assert_true(kernel->bytes <= ARGUMENT_BYTES);
}

static void read_kernels(const char *path)
{
    FILE *file = fopen(path, "re");
    char line[2048];

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        struct kernel *kernel = &kernels[kernel_count];
        char *end = strchr(line, ' ');

        if (line[0] == '#') {
            continue;
        }
        assert_true(kernel_count < KERNELS && end != NULL);
        *end = '\0';
        snprintf(kernel->name, sizeof(kernel->name), "%s", line);
        read_params(kernel, end + 1);
        kernel_count++;
    }
    fclose(file);
}

/* PTX that declares the kernel; byte arrays keep the places of the parameters. */
static void load(struct kernel *kernel)
{
    char text[8192];
    int length = snprintf(text, sizeof(text),
                          ".version 9.0\n.target sm_90\n.address_size 64\n"
                          ".visible .entry %s(\n",
                          kernel->name);
    CUmodule module;

    for (size_t i = 0; i < kernel->params; i++) {
        size_t align = kernel->offsets[i] % 8 == 0   ? 8
                       : kernel->offsets[i] % 4 == 0 ? 4
                       : kernel->offsets[i] % 2 == 0 ? 2
                                                     : 1;

        length += snprintf(text + length, sizeof(text) - (size_t)length,
                           "    .param .align %zu .b8 p%zu[%zu]%s\n", align, i, kernel->sizes[i],
                           i + 1 < kernel->params ? "," : "");
    }
    snprintf(text + length, sizeof(text) - (size_t)length, ")\n{\n    ret;\n}\n");
    OK(cuModuleLoadData(&module, text));
    OK(cuModuleGetFunction(&kernel->function, module, kernel->name));
}

static uint64_t draw(void)
{
    return (uint64_t)rand_r(&seed) << 33 ^ (uint64_t)rand_r(&seed) << 16 ^ (uint64_t)rand_r(&seed);
}

/* Mostly a word that may pass for an argument: nothing, a small number or two of them, an address
 * inside the memory, at its end or just behind. */
static uint64_t draw_word(void)
{
    switch (draw() % 8) {
    case 0:
    case 1:
        return 0;
    case 2:
        return draw() % 64;
    case 3:
        return draw() % 16 << 32 | draw() % 64;
    case 4:
    case 5:
        return memory + draw() % 64 * 512;
    case 6:
        return memory + MEMORY - draw() % 4096;
    default:
        return draw();
    }
}

static void launch(const struct kernel *kernel)
{
    static unsigned char arguments[ARGUMENT_BYTES];
    size_t size = kernel->bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};

    for (size_t at = 0; at < kernel->bytes; at += sizeof(uint64_t)) {
        uint64_t word = draw_word();

        memcpy(arguments + at, &word, sizeof(word));
    }
    OK(cuLaunchKernel(kernel->function, 1 + (unsigned int)(draw() % 4),
                      1 + (unsigned int)(draw() % 4), 1, 128, 1, 1, 0, NULL, NULL, extra));
}

static void test_any_arguments(void **state)
{
    print_message("seed %u, %zu kernels\n", seed, kernel_count);
    OK(cuMemAlloc(&memory, MEMORY));
    OK(cuMemsetD8(memory, 1, MEMORY));
    for (size_t i = 0; i < kernel_count; i++) {
        load(&kernels[i]);
        for (int round = 0; round < ROUNDS; round++) {
            launch(&kernels[i]);
        }
        OK(cuCtxSynchronize());
    }
    OK(cuMemFree(memory));
}

/* The kernel of the list whose name has this part. */
static struct kernel *find(const char *part)
{
    for (size_t i = 0; i < kernel_count; i++) {
        if (strstr(kernels[i].name, part) != NULL) {
            load(&kernels[i]);
            return &kernels[i];
        }
    }
    fail_msg("no kernel has %s", part);
    return NULL;
}

static void run(const struct kernel *kernel, unsigned char *arguments)
{
    size_t size = kernel->bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};

    OK(cuLaunchKernel(kernel->function, 1, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
    OK(cuCtxSynchronize());
}

static void put_u32(unsigned char *arguments, size_t at, uint32_t number)
{
    memcpy(arguments + at, &number, sizeof(number));
}

static void put_u64(unsigned char *arguments, size_t at, uint64_t number)
{
    memcpy(arguments + at, &number, sizeof(number));
}

/* A tensor of rows whose rows are reduced: each to an element of both results. */
struct rows {
    uint32_t count, length, bytes; /* of an element */
    CUdeviceptr source, results[2];
};

/* An OffsetCalculator of one dimension for `tensors`; returns its end. */
static size_t put_offsets(unsigned char *arguments, size_t at, uint32_t size, size_t tensors,
                          const uint32_t *strides)
{
    size_t sizes = at + sizeof(uint32_t), behind = sizes + 25 * 3 * sizeof(uint32_t);

    put_u32(arguments, at, 1);
    put_u32(arguments, sizes, size);
    for (size_t i = 0; i < tensors; i++) {
        put_u32(arguments, behind + i * sizeof(uint32_t), strides[i]);
    }
    return behind + 25 * tensors * sizeof(uint32_t);
}

/* The ReduceOp of MinMaxOps. */
static void reduce_rows(const struct kernel *kernel, const struct rows *rows)
{
    unsigned char arguments[ARGUMENT_BYTES] = {0};
    size_t config = (3 * rows->bytes + sizeof(int) - 1) / sizeof(int) * sizeof(int), at;

    put_u32(arguments, config + sizeof(int), rows->length);
    put_u32(arguments, config + 2 * sizeof(int), rows->count);
    at = put_offsets(arguments, config + 64, rows->length, 1, &rows->bytes);
    at = put_offsets(arguments, at, rows->count, 2,
                     (uint32_t[]){rows->bytes, rows->length * rows->bytes});
    at = (at + sizeof(CUdeviceptr) - 1) / sizeof(CUdeviceptr) * sizeof(CUdeviceptr);
    put_u64(arguments, at, rows->source);
    put_u64(arguments, at + sizeof(CUdeviceptr), rows->results[0]);
    put_u64(arguments, at + 2 * sizeof(CUdeviceptr), rows->results[1]);
    arguments[at + 7 * sizeof(CUdeviceptr) + 1] = 1; /* the results are final */
    put_u32(arguments, at + 7 * sizeof(CUdeviceptr) + sizeof(int), 2);
    run(kernel, arguments);
}

static struct rows new_rows(uint32_t count, uint32_t length, uint32_t bytes, const void *content)
{
    struct rows rows = {count, length, bytes, 0, {0, 0}};

    OK(cuMemAlloc(&rows.source, (size_t)count * length * bytes));
    OK(cuMemAlloc(&rows.results[0], (size_t)count * bytes));
    OK(cuMemAlloc(&rows.results[1], (size_t)count * bytes));
    if (content != NULL) {
        OK(cuMemcpyHtoD(rows.source, content, (size_t)count * length * bytes));
    }
    return rows;
}

static void free_rows(const struct rows *rows)
{
    OK(cuMemFree(rows->source));
    OK(cuMemFree(rows->results[0]));
    OK(cuMemFree(rows->results[1]));
}

/* The least goes to the first result, the greatest to the second. */
static void check_rows(const char *kernel, struct rows rows, const void *least,
                       const void *greatest)
{
    unsigned char found[2][64];
    size_t bytes = (size_t)rows.count * rows.bytes;

    reduce_rows(find(kernel), &rows);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(spillway_sim_known(rows.results[i], bytes), 1);
        OK(cuMemcpyDtoH(found[i], rows.results[i], bytes));
    }
    assert_memory_equal(found[0], least, bytes);
    assert_memory_equal(found[1], greatest, bytes);
    free_rows(&rows);
}

static void test_least_and_greatest(void **state)
{
    const float numbers[] = {3, -2, 8, 0.5F, -1, -7, -1, -3};
    const float least[] = {-2, -7}, greatest[] = {8, -1};
    const int64_t longs[] = {INT64_MIN, 5, INT64_MAX};
    const uint16_t halves[] = {0xc000, 0x3c00, 0x4200, 0x3800}; /* -2, 1, 3, 0.5 */
    const bool mask[] = {true, true, false, true, false, false};
    const bool all[] = {true, false, false}, any[] = {true, true, false};

    check_rows("ILi512ELi1ENS0_8ReduceOpIfNS0_9MinMaxOps", new_rows(2, 4, 4, numbers), least,
               greatest);
    check_rows("ILi128ELi4ENS0_8ReduceOpIfNS0_9MinMaxOps", new_rows(2, 4, 4, numbers), least,
               greatest);
    check_rows("9MinMaxOpsIlli", new_rows(1, 3, 8, longs), &longs[0], &longs[2]);
    check_rows("9MinMaxOpsIS4_S4_i", new_rows(1, 4, 2, halves), &halves[0], &halves[2]);
    check_rows("9MinMaxOpsIbbi", new_rows(3, 2, 1, mask), all, any);
}

/* A value that is not a number is the least and the greatest. Results of unknown content are not
 * known. */
static void test_least_and_greatest_of_none(void **state)
{
    const float numbers[] = {1, NAN, 2, 3, 4, 5};
    struct rows rows = new_rows(2, 3, 4, numbers), unknown = new_rows(1, 5000, 4, NULL);
    float found[2][2];

    reduce_rows(find("9MinMaxOpsIffi"), &rows);
    for (int i = 0; i < 2; i++) {
        OK(cuMemcpyDtoH(found[i], rows.results[i], sizeof(found[i])));
        assert_true(isnan(found[i][0]));
    }
    assert_true(found[0][1] == 3 && found[1][1] == 5);
    free_rows(&rows);

    OK(cuMemsetD8(unknown.results[1], 1, 4));
    reduce_rows(find("9MinMaxOpsIffi"), &unknown);
    OK(cuMemcpyDtoH(found[1], unknown.results[1], 4));
    assert_true(found[1][0] == 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(spillway_sim_known(unknown.results[i], 4), 0);
    }
    free_rows(&unknown);
}

/* vectorized_elementwise_kernel of PyTorch 2.15: the number of elements, the functor, which has
 * `kept` bytes, and the addresses. */
static void run_vectorized(const char *name, uint32_t count, const void *kept, size_t bytes,
                           const CUdeviceptr *addresses, size_t tensors)
{
    struct kernel *kernel = find(name);
    unsigned char arguments[ARGUMENT_BYTES] = {0};

    assert_int_equal(kernel->params, 3);
    assert_int_equal(kernel->sizes[2], tensors * sizeof(CUdeviceptr));
    put_u32(arguments, 0, count);
    if (bytes > 0) {
        memcpy(arguments + kernel->offsets[1], kept, bytes);
    }
    memcpy(arguments + kernel->offsets[2], addresses, tensors * sizeof(CUdeviceptr));
    run(kernel, arguments);
}

static void test_vectorized(void **state)
{
    enum { COUNT = 4 };
    const bool mask[COUNT] = {true, false, true, true};
    const int64_t factor = -3;
    int64_t longs[COUNT] = {0}, chosen[COUNT] = {0};
    CUdeviceptr masked, cast, sum, where;

    OK(cuMemAlloc(&masked, sizeof(mask)));
    OK(cuMemAlloc(&cast, sizeof(longs)));
    OK(cuMemAlloc(&sum, sizeof(longs)));
    OK(cuMemAlloc(&where, sizeof(longs)));
    run_vectorized("FillFunctorIbEESt5arrayIPcLm1EELb0E", COUNT, mask, 1, &masked, 1);
    assert_int_equal(spillway_sim_known(masked, COUNT), 1);
    OK(cuMemcpyHtoD(masked, mask, sizeof(mask)));
    run_vectorized("converting_copy_kernel_cudaIbl", COUNT, NULL, 0, (CUdeviceptr[]){cast, masked},
                   2);
    run_vectorized("CUDAFunctor_addIlEESt5arrayIPcLm3EELb0E", COUNT, &factor, sizeof(factor),
                   (CUdeviceptr[]){sum, cast, cast}, 3);
    run_vectorized("EUlbmmE_", COUNT, NULL, 0, (CUdeviceptr[]){where, masked, cast, sum}, 4);
    OK(cuMemcpyDtoH(longs, sum, sizeof(longs)));
    OK(cuMemcpyDtoH(chosen, where, sizeof(chosen)));
    assert_int_equal(spillway_sim_known(where, sizeof(chosen)), 1);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(longs[i], mask[i] ? -2 : 0);
        assert_int_equal(chosen[i], mask[i]);
    }
    OK(cuMemFree(masked));
    OK(cuMemFree(cast));
    OK(cuMemFree(sum));
    OK(cuMemFree(where));
}

static const char *const writer = ".version 9.0\n.target sm_90\n.address_size 64\n"
                                  ".visible .entry writer(.param .u64 p0)\n{\n    ret;\n}\n";

enum { CHUNK = 2 << 20, CHUNKS = 2 };

/* Two chunks side by side, as a pool maps them. */
static CUdeviceptr map_chunks(CUmemGenericAllocationHandle *handles)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    const CUmemAccessDesc access = {.location = prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address;

    OK(cuMemAddressReserve(&address, CHUNKS * CHUNK, 0, 0, 0));
    for (int i = 0; i < CHUNKS; i++) {
        OK(cuMemCreate(&handles[i], CHUNK, &prop, 0));
        OK(cuMemMap(address + (CUdeviceptr)i * CHUNK, CHUNK, 0, handles[i], 0));
    }
    OK(cuMemSetAccess(address, CHUNKS * CHUNK, &access, 1));
    return address;
}

static _Atomic uint64_t reports;
static CUdeviceptr reported;

static void hand_over(void (*take)(unsigned long long address, unsigned long long bytes))
{
    take(reported, 512);
    reports = 0;
}

/* What a kernel that is not computed may have written is known no more: what was known from before
 * without a gap, in chunks behind too; what follows soon behind a gap; and exactly the rest of the
 * block, if that is known. */
static void test_what_is_lost(void **state)
{
    CUmemGenericAllocationHandle handles[CHUNKS];
    CUdeviceptr address = map_chunks(handles), behind = address + 256;
    void *params[] = {&address};
    CUfunction function;
    CUmodule module;

    OK(cuModuleLoadData(&module, writer));
    OK(cuModuleGetFunction(&function, module, "writer"));
    assert_int_equal(spillway_sim_known(address, 1), 0);
    OK(cuMemsetD8(address, 1, CHUNKS * CHUNK));
    OK(cuCtxSynchronize());
    assert_int_equal(spillway_sim_known(address, CHUNKS * CHUNK), 1);
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(spillway_sim_known(address, 1), 0);
    assert_int_equal(spillway_sim_known(address + CHUNKS * CHUNK - 1, 1), 0);

    OK(cuMemsetD8(behind, 1, CHUNK));
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(spillway_sim_known(behind, 1), 0);
    assert_int_equal(spillway_sim_known(behind + CHUNK - 1, 1), 1);

    OK(cuMemsetD8(address, 1, CHUNK));
    spillway_sim_block(address, 4096);
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(spillway_sim_known(address + 4095, 1), 0);
    assert_int_equal(spillway_sim_known(address + 4096, 1), 1);
    spillway_sim_block(address, 0);

    OK(cuMemsetD8(address, 1, CHUNK));
    spillway_sim_blocks(&reports, hand_over);
    reported = address;
    reports = 1;
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(reports, 0);
    assert_int_equal(spillway_sim_known(address + 511, 1), 0);
    assert_int_equal(spillway_sim_known(address + 512, 1), 1);
    /* An earlier report is taken before the next one, which is of the same memory. */
    reports = 1;
    spillway_sim_block(address, 4096);
    OK(cuMemsetD8(address, 1, CHUNK));
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(spillway_sim_known(address + 4095, 1), 0);
    spillway_sim_block(address, 0);

    OK(cuMemUnmap(address, CHUNK));
    OK(cuMemUnmap(address + CHUNK, CHUNK));
    OK(cuMemRelease(handles[0]));
    OK(cuMemRelease(handles[1]));
    OK(cuMemAddressFree(address, CHUNKS * CHUNK));
}

/* The C++ library reads the names; a CUDA program in C++ has it. */
static bool has_demangler(void)
{
    return dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL) != NULL;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_any_arguments, use_device),
        cmocka_unit_test_setup(test_least_and_greatest, use_device),
        cmocka_unit_test_setup(test_least_and_greatest_of_none, use_device),
        cmocka_unit_test_setup(test_vectorized, use_device),
        cmocka_unit_test_setup(test_what_is_lost, use_device),
    };

    if (!has_demangler()) {
        puts("skipped: there is no C++ library to read names with");
        return 77;
    }
    read_kernels(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
