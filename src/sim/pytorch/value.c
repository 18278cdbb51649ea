#include "sim/pytorch/value.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [SIM_TYPE_NONE] = {"", 0},
    [SIM_TYPE_BOOL] = {"bool", 1},
    [SIM_TYPE_U8] = {"unsigned char", 1},
    [SIM_TYPE_I8] = {"signed char", 1},
    [SIM_TYPE_I16] = {"short", 2},
    [SIM_TYPE_I32] = {"int", 4},
    [SIM_TYPE_I64] = {"long", 8},
    [SIM_TYPE_F16] = {"c10::Half", 2},
    [SIM_TYPE_BF16] = {"c10::BFloat16", 2},
    [SIM_TYPE_F32] = {"float", 4},
    [SIM_TYPE_F64] = {"double", 8},
};

enum { TYPES = sizeof(types) / sizeof(types[0]) };

enum sim_type sim_type_named(struct sim_cxx_text name)
{
    for (size_t i = 1; i < TYPES; i++) {
        if (sim_cxx_is(name, types[i].name)) {
            return (enum sim_type)i;
        }
    }
    return SIM_TYPE_NONE;
}

enum sim_type sim_type_numbered(unsigned int number)
{
    static const enum sim_type numbered[] = {
        SIM_TYPE_U8,  SIM_TYPE_I8,  SIM_TYPE_I16, SIM_TYPE_I32,         SIM_TYPE_I64,
        SIM_TYPE_F16, SIM_TYPE_F32, SIM_TYPE_F64, [11] = SIM_TYPE_BOOL, [15] = SIM_TYPE_BF16};

    return number < sizeof(numbered) / sizeof(numbered[0]) ? numbered[number] : SIM_TYPE_NONE;
}

size_t sim_type_size(enum sim_type type)
{
    return types[type].size;
}

bool sim_type_is_float(enum sim_type type)
{
    return type >= SIM_TYPE_F16;
}

enum sim_type sim_type_to_compute(enum sim_type type)
{
    return type == SIM_TYPE_F16 || type == SIM_TYPE_BF16 ? SIM_TYPE_F32 : type;
}

static float float_of(uint32_t bits)
{
    float number;

    memcpy(&number, &bits, sizeof(number));
    return number;
}

static uint32_t bits_of(float number)
{
    uint32_t bits;

    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

static double half_to_double(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = bits & 1023;
    double number = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                    : exponent == 0 ? ldexp(fraction, -24)
                                    : ldexp(fraction + 1024, exponent - 25);

    return bits >> 15 ? -number : number;
}

/* Rounds to nearest, ties to even. */
static uint16_t double_to_half(double number)
{
    uint16_t sign = signbit(number) ? 0x8000 : 0;
    double size = fabs(number);
    int exponent;

    if (isnan(number)) {
        return 0x7e00;
    }
    if (size < 0x1p-14) {
        return (uint16_t)(sign | (uint16_t)nearbyint(ldexp(size, 24)));
    }
    if (size >= 65520) {
        return sign | 0x7c00;
    }
    (void)frexp(size, &exponent);
    /* If the fraction is rounded up to 2, the carry increments the exponent, which is right. */
    return (uint16_t)(sign + ((unsigned int)(exponent + 14) << 10) +
                      (unsigned int)nearbyint(ldexp(size, 11 - exponent)) - 1024);
}

static uint16_t float_to_bfloat(float number)
{
    uint32_t bits = bits_of(number);

    return isnan(number) ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct sim_value sim_value_load(const void *from, enum sim_type type)
{
    struct sim_value value = {.type = type};
    uint64_t raw = 0;

    memcpy(&raw, from, types[type].size);
    switch (type) {
    case SIM_TYPE_BOOL:
        value.i = (raw & 0xff) != 0;
        break;
    case SIM_TYPE_U8:
        value.i = (uint8_t)raw;
        break;
    case SIM_TYPE_I8:
        value.i = (int8_t)raw;
        break;
    case SIM_TYPE_I16:
        value.i = (int16_t)raw;
        break;
    case SIM_TYPE_I32:
        value.i = (int32_t)raw;
        break;
    case SIM_TYPE_F16:
        value.f = half_to_double((uint16_t)raw);
        break;
    case SIM_TYPE_BF16:
        value.f = (double)float_of((uint32_t)raw << 16);
        break;
    case SIM_TYPE_F32:
        value.f = (double)float_of((uint32_t)raw);
        break;
    case SIM_TYPE_F64:
        memcpy(&value.f, &raw, sizeof(value.f));
        break;
    default:
        value.i = (int64_t)raw;
        break;
    }
    return value;
}

void sim_value_store(void *to, struct sim_value value)
{
    uint64_t raw = (uint64_t)value.i;

    switch (value.type) {
    case SIM_TYPE_F16:
        raw = double_to_half(value.f);
        break;
    case SIM_TYPE_BF16:
        raw = float_to_bfloat((float)value.f);
        break;
    case SIM_TYPE_F32:
        raw = bits_of((float)value.f);
        break;
    case SIM_TYPE_F64:
        memcpy(&raw, &value.f, sizeof(raw));
        break;
    default:
        break;
    }
    memcpy(to, &raw, types[value.type].size);
}

/* Converts as a GPU does: to the nearest representable integer. */
static int64_t integer_of(double number)
{
    if (isnan(number)) {
        return 0;
    }
    return number >= 0x1p63 ? INT64_MAX : number <= -0x1p63 ? INT64_MIN : (int64_t)number;
}

struct sim_value sim_value_cast(struct sim_value value, enum sim_type type)
{
    struct sim_value cast = {.type = type};
    unsigned char raw[sizeof(uint64_t)];

    if (sim_type_is_float(type)) {
        cast.f = sim_type_is_float(value.type) ? value.f : (double)value.i;
    } else if (type == SIM_TYPE_BOOL) {
        cast.i = sim_value_is_true(value);
    } else {
        cast.i = sim_type_is_float(value.type) ? integer_of(value.f) : value.i;
    }
    if (sim_type_to_compute(type) != type) {
        cast.f = (double)(float)cast.f;
    }
    sim_value_store(raw, cast);
    return sim_value_load(raw, type);
}

struct sim_value sim_value_of(enum sim_type type, double number)
{
    return sim_value_cast((struct sim_value){.type = SIM_TYPE_F64, .f = number}, type);
}

double sim_value_number(struct sim_value value)
{
    return sim_type_is_float(value.type) ? value.f : (double)value.i;
}

bool sim_value_is_true(struct sim_value value)
{
    return sim_type_is_float(value.type) ? value.f != 0 : value.i != 0;
}

int sim_value_compare(struct sim_value a, struct sim_value b)
{
    if (!sim_type_is_float(a.type)) {
        return (a.i > b.i) - (a.i < b.i);
    }
    return isnan(a.f) || isnan(b.f) ? 2 : (a.f > b.f) - (a.f < b.f);
}
