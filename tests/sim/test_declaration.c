/* Kernels of C++: what their names say of the parameters, and launches checked by it. */
#include "work.h"

#include <dlfcn.h>

#include "system/demangle.h"
#include "sim/driver/core/control.h"
#include "sim/pytorch/declaration.h"

/* "1:1 3:2": one word in parameter 1, two in parameter 3; "?" when the name says nothing. */
static const char *addresses(const char *name)
{
    static char text[256];
    struct sim_declared *declared = NULL;
    size_t count = 0, used = 0;

    if (!sim_declaration_read(name, &declared, &count)) {
        return "?";
    }
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (declared[i].words > 0) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%zu:%zu",
                                     used > 0 ? " " : "", i, declared[i].words);
        }
    }
    free(declared);
    return text;
}

static void test_names(void **state)
{
    assert_string_equal(addresses("_Z5scalePfi"), "0:1");                  /* scale(float*, int) */
    assert_string_equal(addresses("_Z5scaleiPKfS0_dPS0_"), "1:1 2:1 4:1"); /* float const** last */
    assert_string_equal(addresses("_Z5countjlyb"), "");                    /* numbers only */
    assert_string_equal(addresses("_Z4nonev"), "");                        /* no parameters */
    /* mul<float>(float*, Metadata<2, (Kind)3>, float const*) */
    assert_string_equal(addresses("_Z3mulIfEvPT_8MetadataILi2EL4Kind3EEPKS0_"), "0:1 2:1");
    assert_string_equal(addresses("_Z3mul8MetadataILi2EE"), "?"); /* a struct only */
    /* vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, std::array<char*, 3ul>> */
    assert_string_equal(addresses("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunct"
                                  "or_addIfEESt5arrayIPcLm3EEEEviT0_T1_"),
                        "2:3");
    /* elementwise_kernel<128, 2, a lambda>(int, the lambda) */
    assert_string_equal(addresses("_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_"
                                  "impl_nocastINS0_15CUDAFunctor_addIfEEEEvRNS_18TensorIteratorBas"
                                  "eERKT_EUliE_EEviT1_"),
                        "?");
    assert_string_equal(addresses("_Z3fooPFviE"), "?"); /* a pointer to a function */
    assert_string_equal(addresses("_Z1fSt5arrayIfLm3EEPc"), "1:1");
}

static void test_other_names(void **state)
{
    assert_string_equal(addresses("scale"), "?");
    assert_string_equal(addresses(""), "?");
    assert_string_equal(addresses("_Z"), "?");
    assert_string_equal(addresses("_Zwrong"), "?");
    assert_string_equal(addresses("_ZN2at6native3sumE"), "?"); /* a variable */
}

/* A pointer that points nowhere is seen; what is in a struct is not looked at. */
static void test_launches(void **state)
{
    const struct work *work = *state;
    struct spillway_sim_layouts before, after;
    struct {
        CUdeviceptr stale[2];
    } metadata;
    CUdeviceptr address = 0, end, gone = 0;
    CUfunction function = NULL;
    void *params[] = {&address, &metadata, &end};

    OK(cuModuleGetFunction(&function, work->module, "_Z3mulIfEvPT_8MetadataILi2EL4Kind3EEPKS0_"));
    OK(cuMemAlloc(&gone, 4 * MIB));
    OK(cuMemFree(gone));
    OK(cuMemAlloc(&address, 4 * MIB));
    if (gone == address) {
        gone += 64 * MIB;
    }
    metadata.stale[0] = metadata.stale[1] = gone;
    end = address + 4 * MIB;
    spillway_sim_layouts(&before);
    OK(launch(function, NULL, params));
    OK(cuCtxSynchronize());
    OK(launch(work->other, NULL, NULL)); /* not a name of C++ */
    OK(launch_fill(work, NULL, address, 4, 1));
    spillway_sim_layouts(&after);
    assert_int_equal(after.name, before.name + 1);
    assert_int_equal(after.unknown, before.unknown + 1);
    assert_int_equal(after.builtin, before.builtin + 1);
    assert_int_equal(after.ptx, before.ptx);

    OK(cuMemFree(address));
    OK(launch(function, NULL, params));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Every word of an array of pointers counts. */
static void test_arrays(void **state)
{
    const struct work *work = *state;
    CUdeviceptr address = 0;
    CUfunction function = NULL;
    struct {
        CUdeviceptr words[3];
    } array;
    int count = 5;
    char nothing = 0;
    void *params[] = {&count, &nothing, &array};

    OK(cuModuleGetFunction(&function, work->module, "_Z6vectorILi4E3AddSt5arrayIPcLm3EEEviT0_T1_"));
    OK(cuMemAlloc(&address, 4 * MIB));
    array.words[0] = address;
    array.words[1] = 0;
    array.words[2] = address + 4 * MIB - 1;
    OK(launch(function, NULL, params));
    OK(cuCtxSynchronize());
    array.words[2] += 2 * MIB;
    OK(launch(function, NULL, params));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

struct place {
    size_t offset, size;
};

/* The driver reports these parameters of a kernel, and no more. */
static void check_places(const struct work *work, const char *name, const struct place *expected,
                         size_t count)
{
    CUfunction function = NULL;
    size_t offset, size;

    OK(cuModuleGetFunction(&function, work->module, name));
    for (size_t i = 0; i < count; i++) {
        OK(cuFuncGetParamInfo(function, i, &offset, &size));
        assert_int_equal(offset, expected[i].offset);
        assert_int_equal(size, expected[i].size);
    }
    FAILS(cuFuncGetParamInfo(function, count, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}

static void test_places(void **state)
{
    const struct work *work = *state;
    CUfunction function = NULL;
    size_t offset, size;

    /* f(bool, double, short, float*, int, bool const*, char) */
    check_places(work, "_Z1fbdsPfiPKbc",
                 (struct place[]){{0, 1}, {8, 8}, {16, 2}, {24, 8}, {32, 4}, {40, 8}, {48, 1}}, 7);
    /* f(c10::BFloat16, c10::complex<double>, int, std::array<char*, 3ul>, char) */
    check_places(work, "_Z1fN3c108BFloat16ENS_7complexIdEEiSt5arrayIPcLm3EEc",
                 (struct place[]){{0, 2}, {16, 16}, {32, 4}, {40, 24}, {64, 1}}, 5);
    /* f(char, std::array<short, 3ul>, int) */
    check_places(work, "_Z1fcSt5arrayIsLm3EEi", (struct place[]){{0, 1}, {2, 6}, {8, 4}}, 3);
    check_places(work, "_Z4nonev", NULL, 0);

    /* One of unknown size: a struct behind a pointer, and arrays of structs and of arrays. */
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"_Z1fPf6Struct", "_Z1fPfSt5arrayI6StructLm3EE",
                                            "_Z1fPfSt5arrayIS0_IcLm2EELm3EE"};

        OK(cuModuleGetFunction(&function, work->module, names[i]));
        FAILS(cuFuncGetParamInfo(function, 0, &offset, &size), CUDA_ERROR_NOT_SUPPORTED);
    }
}

/* Known places also mean that one buffer may hold all parameters. */
static void test_buffer(void **state)
{
    const struct work *work = *state;
    CUfunction function = NULL;
    struct {
        int count;
        CUdeviceptr addresses[2];
    } args = {5, {0, 0}};
    size_t bytes = sizeof(args);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};

    OK(cuModuleGetFunction(&function, work->module, "_Z5scaleiSt5arrayIPcLm2EE"));
    OK(cuMemAlloc(&args.addresses[1], 4 * MIB));
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    OK(cuCtxSynchronize());
    OK(cuMemFree(args.addresses[1]));
    OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    FAILS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* Declarations of PTX count, not the types in the name. */
static void test_ptx(void **state)
{
    static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry _Z5scalePfi(.param .u64 a, .param .u32 b,"
                              " .param .u32 c)\n{\n    ret;\n}\n";
    struct work with_ptx = *(const struct work *)*state;

    OK(cuModuleLoadData(&with_ptx.module, ptx));
    check_places(&with_ptx, "_Z5scalePfi", (struct place[]){{0, 8}, {8, 4}, {12, 4}}, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), cmocka_unit_test(test_other_names),
        WORK_TEST(test_launches),     WORK_TEST(test_arrays),
        WORK_TEST(test_places),       WORK_TEST(test_buffer),
        WORK_TEST(test_ptx),
    };

    if (dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL) == NULL) {
        return 77;
    }
    (void)spw_demangle_find(/* load */ false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
