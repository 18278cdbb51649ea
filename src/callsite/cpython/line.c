#include "callsite/cpython/line.h"

#include <stdbool.h>

/* Adds lines without overflow, for any table. */
static int add(int line, int64_t delta)
{
    int64_t sum = line + delta;

    return sum > INT32_MAX || sum < INT32_MIN ? line : (int)sum;
}

static uint32_t known(int line)
{
    return line > 0 ? (uint32_t)line : 0;
}

/* The table has pairs: a step in the code, and the step to the line that begins behind it. */
static uint32_t in_lnotab(const uint8_t *table, size_t length, int first, int code,
                          size_t *ret_used)
{
    int line = first;
    int at = 0;
    size_t i;

    for (i = 0; i + 1 < length; i += 2) {
        at += table[i];
        if (at > code) {
            i += 2;
            break;
        }
        line = add(line, (int8_t)table[i + 1]);
    }
    *ret_used = i;
    return known(line);
}

/* The table has pairs: a run of code, and the step to its line; -128 is for code without a line. */
static uint32_t in_linetable(const uint8_t *table, size_t length, int first, int code,
                             size_t *ret_used)
{
    enum { NO_LINE = -128 };
    int line = first;
    int at = 0;

    for (size_t i = 0; i + 1 < length; i += 2) {
        int step = (int8_t)table[i + 1];

        at += table[i];
        line = step == NO_LINE ? line : add(line, step);
        if (at > code) {
            *ret_used = i + 2;
            return step == NO_LINE ? 0 : known(line);
        }
    }
    *ret_used = length;
    return 0;
}

/* ---- locations ---- */

struct reader {
    const uint8_t *table;
    size_t length;
    size_t at;
};

/* Six bits a byte, the lowest first. Bit 6: more bytes follow. */
static uint32_t read_varint(struct reader *reader)
{
    uint32_t value = 0;
    unsigned shift = 0;
    uint8_t byte = 0x40;

    while ((byte & 0x40) != 0 && reader->at < reader->length) {
        byte = reader->table[reader->at++];
        if (shift < 32) {
            value |= (uint32_t)(byte & 0x3f) << shift;
        }
        shift += 6;
    }
    return value;
}

/* The sign is the lowest bit. */
static int64_t read_signed(struct reader *reader)
{
    uint32_t value = read_varint(reader);

    return (value & 1) != 0 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static void skip(struct reader *reader, size_t bytes)
{
    size_t left = reader->length - reader->at;

    reader->at += bytes < left ? bytes : left;
}

/* Reads the rest of an entry of `kind`, behind its first byte. False when the entry has no line. */
static bool read_location(struct reader *reader, unsigned kind, int *line)
{
    enum { SHORT_MOST = 9, ONE_LINE_FIRST = 10, ONE_LINE_LAST = 12, NO_COLUMNS = 13, LONG = 14 };

    if (kind <= SHORT_MOST) {
        skip(reader, 1);
    } else if (kind <= ONE_LINE_LAST) {
        *line = add(*line, (int)kind - ONE_LINE_FIRST);
        skip(reader, 2);
    } else if (kind == NO_COLUMNS) {
        *line = add(*line, read_signed(reader));
    } else if (kind == LONG) {
        *line = add(*line, read_signed(reader));
        for (int i = 0; i < 3; i++) {
            (void)read_varint(reader);
        }
    } else {
        return false;
    }
    return true;
}

static uint32_t in_locations(const uint8_t *table, size_t length, int first, int code,
                             size_t *ret_used)
{
    enum { CODE_UNIT = 2 };
    struct reader reader = {table, length, 0};
    int64_t end = 0;
    int line = first;

    while (reader.at < length) {
        uint8_t head = table[reader.at++];
        bool has_line = read_location(&reader, head >> 3 & 15, &line);

        end += ((head & 7) + 1) * CODE_UNIT;
        if (end > code) {
            *ret_used = reader.at;
            return has_line ? known(line) : 0;
        }
    }
    *ret_used = length;
    return 0;
}

uint32_t spw_callsite_line_find(enum spw_callsite_line_form form, const uint8_t *table,
                                size_t length, int first, int code, size_t *ret_used)
{
    switch (form) {
    case SPW_LINE_LNOTAB:
        return in_lnotab(table, length, first, code, ret_used);
    case SPW_LINE_LINETABLE:
        return in_linetable(table, length, first, code, ret_used);
    default:
        return in_locations(table, length, first, code, ret_used);
    }
}
