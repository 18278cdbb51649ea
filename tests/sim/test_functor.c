/* Names of PyTorch's functors, and their results. */
#include "sim/pytorch/functor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define EQUAL_TO "at::native::(anonymous namespace)::CompareEqFunctor<long> "
#define LAMBDA(function, parameters)                                                               \
    "at::native::" function "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::"        \
    "{lambda()#4}::operator()() const::{lambda(" parameters ")#1}"

static struct sim_functor read(const char *name)
{
    struct sim_functor functor;

    assert_true(sim_functor_read(sim_cxx_text(name), &functor));
    return functor;
}

static bool is_read(const char *name)
{
    struct sim_functor functor;

    return sim_functor_read(sim_cxx_text(name), &functor);
}

static struct sim_value integer(int64_t number)
{
    return (struct sim_value){.type = SIM_TYPE_I64, .i = number};
}

static struct sim_value single(double number)
{
    return sim_value_of(SIM_TYPE_F32, number);
}

static void test_names(void **state)
{
    struct sim_cxx_entity entity;

    assert_true(sim_cxx_read(sim_cxx_text("a::(anonymous namespace)::f<int, g<1, 2>, h<3> >(long)"),
                             &entity));
    assert_true(sim_cxx_is(entity.name, "f"));
    assert_int_equal(entity.arguments.count, 3);
    assert_true(sim_cxx_is(entity.arguments.items[1], "g<1, 2>"));
    assert_true(sim_cxx_is(entity.parameters.items[0], "long"));
    assert_false(entity.is_lambda);
    assert_true(sim_cxx_read(sim_cxx_text(LAMBDA("neg_kernel_cuda", "float, bool")), &entity));
    assert_true(sim_cxx_is(entity.name, "neg_kernel_cuda"));
    assert_true(entity.is_lambda);
    assert_int_equal(entity.parameters.count, 2);
    assert_true(sim_cxx_is(entity.parameters.items[1], "bool"));
    assert_false(sim_cxx_read(sim_cxx_text(""), &entity));
    assert_true(sim_cxx_read(sim_cxx_text("f<<<<"), &entity));
    assert_true(sim_cxx_read(sim_cxx_text("f>){{lambda("), &entity));
}

static void test_unknown(void **state)
{
    assert_false(is_read(""));
    assert_false(is_read("at::native::GeluFunctor<float>"));
    assert_false(is_read("at::native::FillFunctor<std::string>"));
    assert_false(is_read("at::native::FillFunctor"));
    assert_false(is_read("at::native::BinaryFunctor<float, float, bool, at::native::Odd<float> >"));
    assert_false(is_read("at::native::BinaryFunctor<float, at::native::AbsFunctor<float> >"));
    assert_false(is_read("at::native::BinaryFunctor<float, float, float, "
                         "at::native::AbsFunctor<float> >"));
}

static void test_kept(void **state)
{
    struct sim_functor add = read("at::native::CUDAFunctor_add<c10::Half>");
    struct sim_functor other = read("at::native::CUDAFunctorOnSelf_add<long>");
    struct sim_functor fill = read("at::native::FillFunctor<short>");
    struct sim_value halves[] = {sim_value_of(SIM_TYPE_F16, 1), sim_value_of(SIM_TYPE_F16, 3)};
    const float factor = -2;
    const int64_t kept[] = {5, 3};
    const int16_t number = -7;

    assert_int_equal(add.bytes, sizeof(float));
    assert_int_equal(add.result, SIM_TYPE_F16);
    assert_true(sim_functor_apply(&add, &factor, halves).f == -5);
    assert_int_equal(other.bytes, 2 * sizeof(int64_t));
    assert_int_equal(sim_functor_apply(&other, kept, &(struct sim_value){integer(2).type, 2, 0}).i,
                     17);
    assert_int_equal(fill.input_count, 0);
    assert_int_equal(sim_functor_apply(&fill, &number, NULL).i, -7);
}

/* PyTorch 2.15 chooses between elements as between numbers of their size, and casts in functions of
 * both types. */
static void test_types_of_templates(void **state)
{
    struct sim_functor cast = read("at::native::converting_copy_kernel_cuda<float, c10::Half>"
                                   "(at::TensorIteratorBase&)::{lambda(float)#1}");
    struct sim_functor where = read("at::native::(anonymous namespace)::where_kernel_impl"
                                    "(at::TensorIterator&)::{lambda()#1}::operator()() const::"
                                    "{lambda()#3}::operator()() const::"
                                    "{lambda(bool, unsigned int, unsigned int)#1}");
    struct sim_value number = single(0.1);

    assert_int_equal(cast.result, SIM_TYPE_F16);
    assert_true(sim_functor_apply(&cast, NULL, &number).f == sim_value_of(SIM_TYPE_F16, 0.1).f);
    assert_int_equal(where.inputs[0], SIM_TYPE_BOOL);
    assert_int_equal(sim_type_size(where.inputs[1]), 4);
    assert_int_equal(sim_type_size(where.result), 4);
    assert_false(is_read("at::native::converting_copy_kernel_cuda<float, c10::Float8_e4m3fn>"
                         "(at::TensorIteratorBase&)::{lambda(float)#1}"));
    assert_false(is_read("at::native::converting_copy_kernel_cuda<float>"
                         "(at::TensorIteratorBase&)::{lambda(float)#1}"));
}

static void test_bound(void **state)
{
    struct sim_functor less = read("at::native::AUnaryFunctor<long, long, bool, " EQUAL_TO "> ");
    struct sim_functor divided = read("at::native::BUnaryFunctor<long, long, long, " LAMBDA(
        "div_floor_kernel_cuda", "long, long") ">");
    struct {
        int choice;
        int64_t number;
    } kept = {1, 4};
    struct sim_value input = integer(4);

    assert_int_equal(less.bytes, sizeof(kept));
    assert_int_equal(less.input_count, 1);
    assert_int_equal(sim_functor_apply(&less, &kept, &input).i, 0); /* not equal */
    kept.choice = 0;
    assert_int_equal(sim_functor_apply(&less, &kept, &input).i, 1);
    input = integer(-9);
    assert_int_equal(divided.bytes, 16);
    assert_int_equal(sim_functor_apply(&divided, &kept, &input).i, -3);
    kept.number = 0;
    assert_int_equal(sim_functor_apply(&divided, &kept, &input).i, 0);
}

static void test_lambda_with_pointer(void **state)
{
    struct sim_functor masked =
        read("at::native::(anonymous namespace)::masked_fill_kernel(at::TensorIterator&, "
             "c10::Scalar const&)::{lambda()#1}::operator()() const::{lambda(float, bool)#1}");
    const float kept = -1;
    struct sim_value inputs[] = {single(5), {.type = SIM_TYPE_BOOL, .i = 1}};

    assert_true(sim_functor_fits(&masked, 4));
    assert_true(sim_functor_fits(&masked, 16));
    assert_false(sim_functor_fits(&masked, 8));
    assert_true(sim_functor_apply(&masked, &kept, inputs).f == -1);
    inputs[1].i = 0;
    assert_true(sim_functor_apply(&masked, &kept, inputs).f == 5);
}

static void test_integers_wrap(void **state)
{
    assert_int_equal(sim_functor_combine(SIM_ADD, integer(INT64_MAX), integer(1)).i, INT64_MIN);
    assert_int_equal(sim_functor_combine(SIM_DIVIDE, integer(INT64_MIN), integer(-1)).i, 0);
    assert_int_equal(sim_functor_combine(SIM_REMAINDER, integer(-7), integer(4)).i, 1);
    assert_int_equal(sim_value_of(SIM_TYPE_I8, 300).i, 44);
    assert_int_equal(sim_value_of(SIM_TYPE_I64, INFINITY).i, INT64_MAX);
    assert_int_equal(sim_value_of(SIM_TYPE_I32, NAN).i, 0);
}

/* All halves, and values between them, which are rounded to the nearest. */
static void test_halves(void **state)
{
    for (uint32_t bits = 0; bits < 0x7c00; bits++) {
        uint16_t half = (uint16_t)bits, next = (uint16_t)(bits + 1), stored;
        double low = sim_value_load(&half, SIM_TYPE_F16).f;
        double high = next == 0x7c00 ? 65536 : sim_value_load(&next, SIM_TYPE_F16).f;
        const struct {
            double number;
            uint16_t expected;
        } cases[] = {{low, half},
                     {low + (high - low) * 0.49, half},
                     {low + (high - low) * 0.51, next},
                     {low + (high - low) / 2, half % 2 == 0 ? half : next}};

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            sim_value_store(&stored, (struct sim_value){SIM_TYPE_F16, 0, cases[i].number});
            assert_int_equal(stored, cases[i].expected);
            sim_value_store(&stored, (struct sim_value){SIM_TYPE_F16, 0, -cases[i].number});
            assert_int_equal(stored, cases[i].expected | 0x8000);
        }
    }
}

static void test_not_numbers(void **state)
{
    assert_true(isnan(sim_functor_combine(SIM_GREATEST, single(1), single(NAN)).f));
    assert_true(isnan(sim_functor_combine(SIM_LEAST, single(NAN), single(1)).f));
    assert_int_equal(sim_value_compare(single(NAN), single(NAN)), 2);
    assert_true(isnan(sim_value_of(SIM_TYPE_F16, NAN).f));
    assert_true(isnan(sim_value_of(SIM_TYPE_BF16, NAN).f));
    assert_true(isinf(sim_value_of(SIM_TYPE_F16, 70000).f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),         cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_kept),          cmocka_unit_test(test_types_of_templates),
        cmocka_unit_test(test_bound),         cmocka_unit_test(test_lambda_with_pointer),
        cmocka_unit_test(test_integers_wrap), cmocka_unit_test(test_halves),
        cmocka_unit_test(test_not_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
