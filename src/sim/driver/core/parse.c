#include "sim/driver/core/parse.h"

#include <string.h>
#include <strings.h>

#define FRACTION_ONE UINT64_C(1000000) /* digits behind the point count to a millionth */

struct decimal {
    uint64_t whole;
    uint64_t millionths;
    bool has_fraction;
};

/* Digits, or digits.digits. NULL if there are none or they do not fit; else what follows. */
static const char *read_decimal(const char *text, struct decimal *ret_number)
{
    const char *digits = "0123456789";
    struct decimal number = {0};
    uint64_t place = FRACTION_ONE;

    if (strspn(text, digits) == 0) {
        return NULL;
    }
    for (; *text >= '0' && *text <= '9'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        if (number.whole > (UINT64_MAX - digit) / 10) {
            return NULL;
        }
        number.whole = number.whole * 10 + digit;
    }
    if (*text == '.') {
        number.has_fraction = true;
        if (strspn(++text, digits) == 0) {
            return NULL;
        }
        for (; *text >= '0' && *text <= '9'; text++) {
            place /= 10;
            number.millionths += (uint64_t)(*text - '0') * place;
        }
    }
    *ret_number = number;
    return text;
}

bool sim_parse_number(const char *text, uint64_t *ret_value)
{
    struct decimal number;
    const char *rest = read_decimal(text, &number);

    if (rest == NULL || *rest != '\0' || number.has_fraction) {
        return false;
    }
    *ret_value = number.whole;
    return true;
}

/* How far left the unit at the end of a size shifts a number; false if it is none. */
static bool read_unit(const char *text, unsigned int *ret_shift)
{
    static const char *const units[][2] = {
        {"", "B"}, {"K", "KiB"}, {"M", "MiB"}, {"G", "GiB"}, {"T", "TiB"}};

    for (unsigned int i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcasecmp(text, units[i][0]) == 0 || strcasecmp(text, units[i][1]) == 0) {
            *ret_shift = 10 * i;
            return true;
        }
    }
    return false;
}

static bool read_percentage(const struct decimal *number, struct sim_size *ret_size)
{
    if (number->whole > UINT32_MAX / 10 - 1) {
        return false;
    }
    *ret_size = (struct sim_size){
        .permille = (uint32_t)(number->whole * 10 + number->millionths / (FRACTION_ONE / 10)),
    };
    return ret_size->permille > 0;
}

bool sim_parse_size(const char *text, struct sim_size *ret_size)
{
    struct decimal number;
    unsigned int shift = 0;
    char unit[8] = "";
    size_t length;

    text = read_decimal(text + strspn(text, " \t"), &number);
    if (text == NULL) {
        return false;
    }
    text += strspn(text, " \t");
    length = strcspn(text, " \t");
    if (length >= sizeof(unit) || text[length + strspn(text + length, " \t")] != '\0') {
        return false;
    }
    memcpy(unit, text, length);
    if (strcmp(unit, "%") == 0) {
        return read_percentage(&number, ret_size);
    }
    if (!read_unit(unit, &shift) || (shift == 0 && number.has_fraction) ||
        number.whole > UINT64_MAX >> shift) {
        return false;
    }
    *ret_size = (struct sim_size){
        .bytes = (number.whole << shift) + (number.millionths << shift) / FRACTION_ONE,
    };
    return true;
}

uint64_t sim_size_of(const struct sim_size *size, uint64_t whole)
{
    if (size->permille == 0) {
        return size->bytes;
    }
    return whole / 1000 * size->permille + whole % 1000 * size->permille / 1000;
}
