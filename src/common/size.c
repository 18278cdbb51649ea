#include "common/size.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Fractions count to a millionth of the unit, so that fraction * unit fits 64 bits. */
enum { FRACTION_DIGITS = 6, FRACTION_ONE = 1000000 };

struct decimal {
    uint64_t whole;
    uint64_t millionths;
    bool has_fraction;
};

static const char *skip_spaces(const char *text)
{
    while (*text == ' ' || *text == '\t') {
        text++;
    }
    return text;
}

/* Reads digits, or digits.digits; NULL when there is no number or it does not fit. */
static const char *read_decimal(const char *text, struct decimal *ret_number)
{
    struct decimal number = {0};

    if (!isdigit((unsigned char)*text)) {
        return NULL;
    }
    for (; isdigit((unsigned char)*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        if (number.whole > (UINT64_MAX - digit) / 10) {
            return NULL;
        }
        number.whole = number.whole * 10 + digit;
    }
    if (*text == '.') {
        uint64_t place = FRACTION_ONE;

        number.has_fraction = true;
        if (!isdigit((unsigned char)*++text)) {
            return NULL;
        }
        for (; isdigit((unsigned char)*text); text++) {
            place /= 10;
            number.millionths += (uint64_t)(*text - '0') * place;
        }
    }
    *ret_number = number;
    return text;
}

/* The bytes of a unit written behind a number; 0 for an unknown unit. */
static uint64_t unit_bytes(const char *unit)
{
    static const char letters[] = "KMGT";
    const char *letter;

    if (*unit == '\0' || strcasecmp(unit, "B") == 0) {
        return 1;
    }
    letter = strchr(letters, toupper((unsigned char)*unit));
    if (letter == NULL ||
        (unit[1] != '\0' && strcasecmp(unit + 1, "B") != 0 && strcasecmp(unit + 1, "iB") != 0)) {
        return 0;
    }
    return UINT64_C(1024) << (10 * (letter - letters));
}

bool spw_size_parse(const char *text, uint64_t *ret_bytes, bool *ret_percent)
{
    struct decimal number;
    char unit_text[8];
    size_t length;
    uint64_t unit;
    uint64_t fraction;
    bool percent;

    text = read_decimal(skip_spaces(text), &number);
    if (text == NULL) {
        return false;
    }
    text = skip_spaces(text);
    length = strcspn(text, " \t");
    if (length >= sizeof(unit_text) || *skip_spaces(text + length) != '\0') {
        return false;
    }
    memcpy(unit_text, text, length);
    unit_text[length] = '\0';
    percent = strcmp(unit_text, "%") == 0;
    unit = percent ? 10 : unit_bytes(unit_text);
    if (unit == 0 || (unit == 1 && number.has_fraction)) {
        return false;
    }
    fraction = number.millionths * unit / FRACTION_ONE;
    if (number.whole > (UINT64_MAX - fraction) / unit) {
        return false;
    }
    *ret_bytes = number.whole * unit + fraction;
    *ret_percent = percent;
    return true;
}

/* bytes * 100 / unit, rounded; both parts stay below 64 bits for every size. */
static uint64_t hundredths(uint64_t bytes, uint64_t unit)
{
    return bytes / unit * 100 + (bytes % unit * 100 + unit / 2) / unit;
}

const char *spw_size_text(uint64_t bytes, char text[SPW_SIZE_TEXT])
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB"};
    uint64_t unit = 1024;
    size_t name = 0;

    if (bytes < unit) {
        snprintf(text, SPW_SIZE_TEXT, "%" PRIu64 " B", bytes);
        return text;
    }
    while (name + 1 < sizeof(names) / sizeof(*names) && hundredths(bytes, unit) >= 102400) {
        unit *= 1024;
        name++;
    }
    if (bytes % unit == 0) {
        snprintf(text, SPW_SIZE_TEXT, "%" PRIu64 " %s", bytes / unit, names[name]);
    } else {
        uint64_t value = hundredths(bytes, unit);

        snprintf(text, SPW_SIZE_TEXT, "%" PRIu64 ".%02" PRIu64 " %s", value / 100, value % 100,
                 names[name]);
    }
    return text;
}
