/* Kernels that are recognised and computed, with any arguments: nothing is read or written beyond
 * the memory that the device has, and the driver goes on. */
#include "check.h"

#include <dlfcn.h>
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
        cmocka_unit_test_setup(test_what_is_lost, use_device),
    };

    if (!has_demangler()) {
        puts("skipped: there is no C++ library to read names with");
        return 77;
    }
    read_kernels(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
