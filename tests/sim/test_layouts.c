/* Parameters of kernels as the code tells them: cubins, and fat binaries of them, with and without
 * compression; launches checked by it. The files are those of tests/tools/fatbins.py, in the folder
 * that FATBINS names. */
#include "work.h"

#include "cases.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include "sim/driver/code/code.h"
#include "sim/driver/core/control.h"
#include "sim/driver/code/unpack.h"

#define SCALE "_Z5scalePfi"
#define MUL   "_Z3mulIfEvPT_8MetadataILi2EL4Kind3EEPKS0_"
#define BOX   "_Z3box6Struct"
#define OTHER "_Z5otherPfS_"

static const char *path_of(const char *name)
{
    static char path[4096];

    snprintf(path, sizeof(path), "%s/%s", getenv("FATBINS"), name);
    return path;
}

/* Data end where memory does, so that whoever reads on is seen. */
#define ROOM ((size_t)64 << 10)

static unsigned char *place(const void *data, size_t size)
{
    unsigned char *room =
        mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(room, MAP_FAILED);
    assert_int_equal(mprotect(room + ROOM, ROOM, PROT_NONE), 0);
    memcpy(room + ROOM - size, data, size);
    return room + ROOM - size;
}

static void drop(unsigned char *data, size_t size)
{
    munmap(data + size - ROOM, 2 * ROOM);
}

/* The content of a file, placed. */
static unsigned char *read_whole(const char *name, size_t *ret_size)
{
    FILE *file = fopen(path_of(name), "rb");
    unsigned char content[ROOM];

    assert_non_null(file);
    *ret_size = fread(content, 1, sizeof(content), file);
    fclose(file);
    return place(content, *ret_size);
}

static bool has_library(const char *name)
{
    return strcmp(name, "zstd") == 0  ? dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL) != NULL
           : strcmp(name, "lz4") == 0 ? dlopen("liblz4.so.1", RTLD_NOW | RTLD_LOCAL) != NULL
                                      : true;
}

struct expected {
    size_t offset, size;
};

static void check_places(CUfunction function, const struct expected *expected, size_t count)
{
    size_t offset, size;

    for (size_t i = 0; i < count; i++) {
        OK(cuFuncGetParamInfo(function, i, &offset, &size));
        assert_int_equal(offset, expected[i].offset);
        assert_int_equal(size, expected[i].size);
    }
    FAILS(cuFuncGetParamInfo(function, count, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}

static CUfunction function_of(CUmodule module, const char *name)
{
    CUfunction function = NULL;

    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

static void check_unknown(CUmodule module, const char *name)
{
    size_t offset, size;

    FAILS(cuFuncGetParamInfo(function_of(module, name), 0, &offset, &size),
          CUDA_ERROR_NOT_SUPPORTED);
}

static void check_all(CUmodule module)
{
    check_places(function_of(module, SCALE), (struct expected[]){{0, 8}, {8, 4}}, 2);
    check_places(function_of(module, MUL), (struct expected[]){{0, 8}, {8, 16}, {24, 8}}, 3);
    check_places(function_of(module, BOX), (struct expected[]){{0, 8}}, 1);
    check_places(function_of(module, "_Z4nonev"), NULL, 0);
    check_places(function_of(module, OTHER), (struct expected[]){{0, 40}}, 1);
    check_places(function_of(module, "plain"), (struct expected[]){{0, 8}, {8, 8}, {16, 24}}, 3);
    check_places(function_of(module, "large"), (struct expected[]){{0, 8}, {8, 4800}}, 2);
    check_unknown(module, "not_there");
}

/* An image in memory may be gone when the first kernel is looked up. */
static void test_modules(void **state)
{
    const char *names[] = {"cubin", "plain", "zstd", "lz4"};
    CUmodule module;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unsigned char *data;
        size_t size;

        if (!has_library(names[i])) {
            continue;
        }
        OK(cuModuleLoad(&module, path_of(names[i])));
        check_all(module);
        OK(cuModuleUnload(module));

        data = read_whole(names[i], &size);
        OK(cuModuleLoadData(&module, data));
        drop(data, size);
        check_all(module);
        OK(cuModuleUnload(module));
    }
}

static void check_library(const unsigned char *data, CUlibraryOption *option)
{
    void *value = (void *)1;
    CUlibrary library;
    CUmodule module;
    CUkernel kernel;
    size_t offset = 0, size = 0;

    OK(cuLibraryLoadData(&library, data, NULL, NULL, 0, option, &value, option != NULL));
    OK(cuLibraryGetKernel(&kernel, library, SCALE));
    OK(cuKernelGetParamInfo(kernel, 1, &offset, &size));
    assert_int_equal(offset, 8);
    assert_int_equal(size, 4);
    OK(cuLibraryGetModule(&module, library));
    check_all(module);
    OK(cuLibraryUnload(library));
}

static void test_libraries(void **state)
{
    CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
    size_t size;
    unsigned char *data = read_whole("plain", &size);
    struct {
        uint32_t magic, version;
        const void *data;
        void *file;
    } wrapper = {0x466243b1, 1, data, NULL};

    check_library(data, NULL);
    check_library(data, &preserved);
    check_library((const unsigned char *)&wrapper, &preserved);
    drop(data, size);
}

/* In the case "arch": what is loaded for the architecture of the profile. */
static int choose(void)
{
    CUmodule module;
    CUfunction function;
    size_t offset, size;
    const char *expected = getenv("EXPECTED");

    if (use_device(NULL) != 0 || cuModuleLoad(&module, path_of(getenv("FILE_NAME"))) != 0 ||
        cuModuleGetFunction(&function, module, "where") != 0 ||
        cuFuncGetParamInfo(function, 1, &offset, &size) != 0) {
        return 1;
    }
    return offset == strtoul(expected, NULL, 10) &&
                   cuModuleGetFunction(&function, module, expected) == CUDA_SUCCESS &&
                   cuFuncGetParamInfo(function, 0, &offset, &size) == CUDA_ERROR_INVALID_VALUE
               ? 0
               : 2;
}

/* In the case "versions": of the loaded code, "BINARY PTX", or "none" if no code suits. */
static int versions(void)
{
    CUmodule module;
    CUfunction function;
    char text[32] = "none";
    int binary, ptx;
    CUresult result = use_device(NULL) != 0 ? CUDA_ERROR_NO_DEVICE
                                            : cuModuleLoad(&module, path_of(getenv("FILE_NAME")));

    if (result == CUDA_SUCCESS) {
        if (cuModuleGetFunction(&function, module, "where") != 0 ||
            cuFuncGetAttribute(&binary, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function) != 0 ||
            cuFuncGetAttribute(&ptx, CU_FUNC_ATTRIBUTE_PTX_VERSION, function) != 0) {
            return 1;
        }
        snprintf(text, sizeof(text), "%d %d", binary, ptx);
    } else if (result != CUDA_ERROR_NO_BINARY_FOR_GPU) {
        return 2;
    }
    return strcmp(text, getenv("EXPECTED")) == 0 ? 0 : 3;
}

static const struct test_case cases[] = {{"choose", choose}, {"versions", versions}, {NULL, NULL}};

static void check_rows(const char *test, const char *const (*rows)[3], size_t count)
{
    char errors[1024];

    for (size_t i = 0; i < count; i++) {
        int status = run_case(test, errors, sizeof(errors), rows[i][0], rows[i][1], rows[i][2],
                              (char *)NULL);

        if (status != 0) {
            print_error("%s %s %s\n", rows[i][0], rows[i][1], rows[i][2]);
        }
        assert_int_equal(status, 0);
    }
}

static void test_architectures(void **state)
{
    static const char *const rows[][3] = {
        {"SPILLWAY_SIM_PROFILE=t4-16g", "FILE_NAME=choice", "EXPECTED=75"},
        {"SPILLWAY_SIM_PROFILE=a100-40g", "FILE_NAME=choice", "EXPECTED=80"},
        {"SPILLWAY_SIM_PROFILE=rtx4090-24g", "FILE_NAME=choice", "EXPECTED=86"},
        {"SPILLWAY_SIM_PROFILE=h100-80g", "FILE_NAME=choice", "EXPECTED=90a"},
        {"SPILLWAY_SIM_PROFILE=h100-80g", "FILE_NAME=later", "EXPECTED=120"},
    };

    check_rows("choose", rows, sizeof(rows) / sizeof(rows[0]));
}

/* Libraries choose the shape of a launch by these attributes, as CUB does. */
static void test_versions(void **state)
{
    static const char *const rows[][3] = {
        {"SPILLWAY_SIM_PROFILE=t4-16g", "FILE_NAME=choice", "EXPECTED=75 75"},
        {"SPILLWAY_SIM_PROFILE=rtx4090-24g", "FILE_NAME=choice", "EXPECTED=86 86"},
        {"SPILLWAY_SIM_PROFILE=h100-80g", "FILE_NAME=choice", "EXPECTED=90 90"},
        {"SPILLWAY_SIM_PROFILE=h100-80g", "FILE_NAME=elsewhere", "EXPECTED=none"},
        {"SPILLWAY_SIM_PROFILE=h100-80g", "FILE_NAME=later", "EXPECTED=90 80"},
        {"SPILLWAY_SIM_PROFILE=t4-16g", "FILE_NAME=later", "EXPECTED=75 75"},
    };

    check_rows("versions", rows, sizeof(rows) / sizeof(rows[0]));
}

/* Without a cubin that can be read, the name is what is left. */
static void test_others(void **state)
{
    const char *names[] = {"text", "too_short", "too_long", "not_packed"};
    CUmodule module;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (access(path_of(names[i]), R_OK) != 0) {
            continue;
        }
        OK(cuModuleLoad(&module, path_of(names[i])));
        check_places(function_of(module, SCALE), (struct expected[]){{0, 8}, {8, 4}}, 2);
        check_unknown(module, MUL);
        check_unknown(module, "plain");
        OK(cuModuleUnload(module));
    }
}

/* The result does not matter. */
static void read_damaged(unsigned char *data, size_t size)
{
    struct sim_cubin cubin;
    struct sim_fatbin_choice choice = sim_fatbin_choose(data, size, 90);
    struct sim_code *code = sim_cubin_open(data, size, &cubin)
                                ? sim_code_of_cubin(&cubin)
                                : sim_code_of_fatbin(&choice, /* kept */ true);
    const struct sim_param_place *places;
    size_t count = 0, sum = 0;

    places = sim_code_params(code, SCALE, &count);
    for (size_t i = 0; places != NULL && i < count; i++) {
        sum += places[i].offset + places[i].size;
    }
    assert_true(sum < (size_t)count * (1 << 17) + 1);
    sim_code_free(code);
}

/* Files that end too early, and files in which a byte is wrong. */
static void test_damage(void **state)
{
    const char *names[] = {"cubin", "plain", "zstd", "lz4"};

    sim_unpack_start();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unsigned char *data;
        size_t size;

        if (!has_library(names[i])) {
            continue;
        }
        data = read_whole(names[i], &size);
        for (size_t length = 0; length < size; length++) {
            unsigned char *part = place(data, length);

            read_damaged(part, length);
            drop(part, length);
        }
        for (size_t at = 0; at < size; at++) {
            data[at] ^= 0xff;
            read_damaged(data, size);
            data[at] ^= 0xff;
        }
        drop(data, size);
    }
}

/* A pointer that is declared as one must point to something, and so must 64 bits when nothing is
 * declared; in structs, anything may be. */
static void test_launches(void **state)
{
    struct spillway_sim_layouts before, after;
    CUdeviceptr address = new_words(4), hole = reserve(2 * MIB);
    CUdeviceptr holes[5] = {hole, hole, hole, hole, hole};
    void *mul[] = {&address, holes, &address}, *box[] = {holes};
    void *plain[] = {&address, &address, holes};
    CUmodule module;

    OK(cuModuleLoad(&module, path_of("plain")));
    spillway_sim_layouts(&before);
    OK(launch(function_of(module, MUL), NULL, mul));
    OK(launch(function_of(module, "plain"), NULL, plain));
    OK(launch(function_of(module, BOX), NULL, box));
    OK(launch(function_of(module, OTHER), NULL, box));
    OK(launch(function_of(module, "_Z4nonev"), NULL, NULL));
    OK(cuCtxSynchronize());
    spillway_sim_layouts(&after);
    assert_int_equal(after.code, before.code + 3);
    assert_int_equal(after.structs, before.structs + 2);
    assert_int_equal(after.unknown, before.unknown);

    plain[1] = holes;
    OK(launch(function_of(module, "plain"), NULL, plain));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void test_declared_pointer(void **state)
{
    CUdeviceptr hole = reserve(2 * MIB);
    int count = 5;
    void *params[] = {&hole, &count};
    CUmodule module;

    OK(cuModuleLoad(&module, path_of("plain")));
    OK(launch(function_of(module, SCALE), NULL, params));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WORK_TEST(test_modules),
        WORK_TEST(test_libraries),
        cmocka_unit_test(test_architectures),
        cmocka_unit_test(test_versions),
        WORK_TEST(test_others),
        cmocka_unit_test(test_damage),
        WORK_TEST(test_launches),
        WORK_TEST(test_declared_pointer),
    };
    int result;

    if (is_case(argc, argv, cases, &result)) {
        return result;
    }
    if (dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL) == NULL) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
