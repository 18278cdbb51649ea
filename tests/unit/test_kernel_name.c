#include "submit/kernel_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "system/demangle.h"

/* Without a demangler: only the list tells something, and of C++ names nothing is known. */
static void test_without_demangler(void **state)
{
    assert_true(spw_submit_kernel_name_may_be_indirect("_Z6vecaddPKfS0_Pfi"));
    assert_true(spw_submit_kernel_name_may_be_indirect("ncclDevKernel"));
    assert_false(spw_submit_kernel_name_may_be_indirect("ampere_sgemm_128x64_nn"));
}

/* Each entry of the list is found alone, and inside a longer name. */
static void test_list(void **state)
{
#define SPW_INDIRECT(part, why)                                                                    \
    assert_true(spw_submit_kernel_name_may_be_indirect(part));                                     \
    assert_true(spw_submit_kernel_name_may_be_indirect("_ZN1a" part "IfEEvv"));
#include "submit/indirect.def"
#undef SPW_INDIRECT
}

static void test_indirect(void **state)
{
    static const char *const names[] = {
        "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
        "_Z37ncclKernel_AllReduce_RING_LL_Sum_floatP11ncclDevCommmP8ncclWork",
        ("_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalINS1_17GroupProblemShapeIN4cute5"
         "tupleIJiiiEEEEEvvEEEEvNT_6ParamsE"),
        /* split_with_sizes_copy_out_contiguous_no_cast_kernel(char **, char **, long *, ...) */
        "_ZN2at6native6detailL4copyEPPcS3_PlS4_S4_ll",
        /* void chunk_cat<float, c10::BFloat16>(c10::BFloat16 **, float *, long *) */
        "_ZN2at6native6detailL9chunk_catIfN3c108BFloat16EEEvPPT0_PT_Pl",
        /* gemm(int, float const *const *, float **) */
        "_Z4gemmiPKPKfPPf",
        "_Z4gemmPrVKPd",
        /* A substitution: iglubatch_setup_pointers(int, int, int, double *, double **) */
        "_Z24iglubatch_setup_pointersiiiPdPS_",
        "_Z1fPKfPS0_",
        "_ZN2at6native1fEP5BlockiPS2_",
        "_ZL1fPcPKS_",
        /* A template argument, alone and made into a pointer by the parameter */
        "_Z1fIPPvLi128EEvT_",
        "_Z1fIPfEvPT_",
        "_Z1fIL8Schedule16ELb1EEvPPf",
        "_Z1fPPKVf",
        "_Z1fPKPf",
        "_Z1fPVKPf",
        "_Z1fPrPf",
        /* Names that cannot be read */
        "_Z",
        "_Z9",
        "_Z99999999999999999999P",
        "_Z1fPdPS9_",
        "_ZNE",
        "_Z1fILPK3EEvPf",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!spw_submit_kernel_name_may_be_indirect(names[i])) {
            fail_msg("%s", names[i]);
        }
    }
}

static void test_plain(void **state)
{
    static const char *const names[] = {
        "",
        "spw_add",
        "ampere_sgemm_128x64_nn",
        "triton_poi_fused_add_0",
        "f(float**)",
        "PPPP",
        "_Z4PPPPPf",
        "_Z6vecaddPKfS0_Pfi",
        "_Z1fPA3_f",
        "_Z1fP3FooPKS_",
        "_ZN2at1fEP3FooPS0_",
        "_Z1fPfS_",
        /* at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>, Array<char*, 3>> */
        ("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3E"
         "EEEviT0_T1_"),
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (spw_submit_kernel_name_may_be_indirect(names[i])) {
            fail_msg("%s", names[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest before[] = {cmocka_unit_test(test_without_demangler)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_indirect),
        cmocka_unit_test(test_plain),
    };

    if (cmocka_run_group_tests(before, NULL, NULL) != 0) {
        return 1;
    }
    if (!spw_demangle_find(/* load */ true)) {
        puts("the C++ library is needed");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
