#include "policy/scan.h"

#include "common/grow.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scanner {
    const unsigned char *text;
    size_t length;
    size_t at;
    size_t capacity;
    int depth;
    struct spw_scan *scan;
};

static bool scan_value(struct scanner *scanner, size_t key);

static bool fail(struct scanner *scanner, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool fail(struct scanner *scanner, size_t at, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(scanner->scan->problem, SPW_SCAN_PROBLEM, format, arguments);
    va_end(arguments);
    scanner->scan->problem_at = at;
    return false;
}

/* The byte at the scanner's place, -1 at the end. */
static int peek(const struct scanner *scanner)
{
    return scanner->at < scanner->length ? scanner->text[scanner->at] : -1;
}

/* Reports the byte at the scanner's place, which cannot stand there. */
static bool unexpected(struct scanner *scanner, const char *expected)
{
    int byte = peek(scanner);

    if (byte < 0) {
        return fail(scanner, scanner->at, "the file ends here, expected %s", expected);
    }
    if (byte < 0x20 || byte >= 0x7F) {
        return fail(scanner, scanner->at, "byte 0x%02x, expected %s", byte, expected);
    }
    return fail(scanner, scanner->at, "'%c', expected %s", byte, expected);
}

static void skip_blanks(struct scanner *scanner)
{
    int byte = peek(scanner);

    while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
        scanner->at++;
        byte = peek(scanner);
    }
}

static bool add_place(struct scanner *scanner, size_t key)
{
    struct spw_scan *scan = scanner->scan;

    if (!SPW_GROW(&scan->places, &scanner->capacity, scan->count + 1)) {
        return fail(scanner, scanner->at, "no memory to read the file");
    }
    scan->places[scan->count] = (struct spw_scan_place){
        .key = (uint32_t)key, .value = (uint32_t)scanner->at, .next = (uint32_t)scan->count + 1};
    scan->count++;
    return true;
}

static int hex_digit(int byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Four digits of \uXXXX behind the u; -1 when they are not there. */
static int read_unit(const struct scanner *scanner, size_t at)
{
    int unit = 0;

    for (size_t i = at; i < at + 4; i++) {
        int digit = i < scanner->length ? hex_digit(scanner->text[i]) : -1;

        if (digit < 0) {
            return -1;
        }
        unit = unit << 4 | digit;
    }
    return unit;
}

/* At the backslash of \uXXXX. Surrogates must come in pairs; NUL is refused, since it ends strings
 * in C. */
static bool scan_unit(struct scanner *scanner)
{
    size_t start = scanner->at;
    int unit = read_unit(scanner, start + 2);

    if (unit < 0) {
        return fail(scanner, start, "\\u without four digits, expected \\u0041");
    }
    if (unit == 0) {
        return fail(scanner, start, "\\u0000, expected any other character");
    }
    scanner->at += 6;
    if (unit < 0xD800 || unit > 0xDFFF) {
        return true;
    }
    if (unit < 0xDC00 && scanner->at + 1 < scanner->length && scanner->text[scanner->at] == '\\' &&
        scanner->text[scanner->at + 1] == 'u') {
        int low = read_unit(scanner, scanner->at + 2);

        if (low >= 0xDC00 && low <= 0xDFFF) {
            scanner->at += 6;
            return true;
        }
    }
    return fail(scanner, start, "half of a surrogate pair, expected both halves");
}

static bool scan_escape(struct scanner *scanner)
{
    int next = scanner->at + 1 < scanner->length ? scanner->text[scanner->at + 1] : -1;

    if (next == 'u') {
        return scan_unit(scanner);
    }
    if (next <= 0 || strchr("\"\\/bfnrt", next) == NULL) {
        return fail(scanner, scanner->at,
                    "an unknown escape, expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    }
    scanner->at += 2;
    return true;
}

/* One character of two bytes or more. */
static bool scan_utf8(struct scanner *scanner)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *bytes = scanner->text + scanner->at;
    size_t left = scanner->length - scanner->at;
    size_t length = bytes[0] >> 5 == 6 ? 2 : bytes[0] >> 4 == 14 ? 3 : bytes[0] >> 3 == 30 ? 4 : 0;
    uint32_t code = length > 0 ? bytes[0] & (0x7FU >> length) : 0;
    bool good = length > 0 && length <= left;

    for (size_t i = 1; good && i < length; i++) {
        good = bytes[i] >> 6 == 2;
        code = code << 6 | (bytes[i] & 0x3FU);
    }
    if (!good || code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        return fail(scanner, scanner->at, "byte 0x%02x is not UTF-8, expected UTF-8 text",
                    bytes[0]);
    }
    scanner->at += length;
    return true;
}

/* At the opening quote. */
static bool scan_string(struct scanner *scanner)
{
    scanner->at++;
    for (;;) {
        int byte = peek(scanner);

        if (byte < 0) {
            return fail(scanner, scanner->at, "the file ends in a string, expected \"");
        }
        if (byte == '"') {
            scanner->at++;
            return true;
        }
        if (byte < 0x20) {
            return fail(scanner, scanner->at,
                        "a line break or control character in a string, "
                        "expected \" before it, or an escape such as \\n");
        }
        if (byte == '\\' ? !scan_escape(scanner) : byte >= 0x80 && !scan_utf8(scanner)) {
            return false;
        }
        scanner->at += byte != '\\' && byte < 0x80;
    }
}

static size_t skip_digits(struct scanner *scanner)
{
    size_t start = scanner->at;

    while (peek(scanner) >= '0' && peek(scanner) <= '9') {
        scanner->at++;
    }
    return scanner->at - start;
}

static bool scan_number(struct scanner *scanner)
{
    size_t start = scanner->at;

    scanner->at += peek(scanner) == '-';
    if (peek(scanner) == '0') {
        scanner->at++;
        if (peek(scanner) >= '0' && peek(scanner) <= '9') {
            return fail(scanner, start, "a number with a leading zero, expected none");
        }
    } else if (skip_digits(scanner) == 0) {
        return unexpected(scanner, "a digit");
    }
    if (peek(scanner) == '.') {
        scanner->at++;
        if (skip_digits(scanner) == 0) {
            return unexpected(scanner, "a digit");
        }
    }
    if (peek(scanner) == 'e' || peek(scanner) == 'E') {
        scanner->at++;
        scanner->at += peek(scanner) == '+' || peek(scanner) == '-';
        if (skip_digits(scanner) == 0) {
            return unexpected(scanner, "a digit");
        }
    }
    if (scanner->at - start > SPW_SCAN_NUMBER) {
        return fail(scanner, start, "a number of more than %d characters, expected a shorter one",
                    SPW_SCAN_NUMBER);
    }
    return true;
}

static bool scan_word(struct scanner *scanner, const char *word)
{
    size_t length = strlen(word);

    if (scanner->length - scanner->at < length ||
        memcmp(scanner->text + scanner->at, word, length) != 0) {
        return unexpected(scanner, "a value");
    }
    scanner->at += length;
    return true;
}

/* Behind a member or an item. *ret_more: another one follows. */
static bool scan_separator(struct scanner *scanner, char close, bool *ret_more)
{
    skip_blanks(scanner);
    if (peek(scanner) == ',') {
        scanner->at++;
        skip_blanks(scanner);
        *ret_more = true;
        if (peek(scanner) == close) {
            return unexpected(scanner, close == '}' ? "another key after the comma"
                                                    : "another value after the comma");
        }
        return true;
    }
    *ret_more = false;
    if (peek(scanner) != close) {
        return unexpected(scanner, close == '}' ? "',' or '}'" : "',' or ']'");
    }
    scanner->at++;
    return true;
}

static bool scan_member(struct scanner *scanner)
{
    size_t key = scanner->at;

    if (peek(scanner) != '"') {
        return unexpected(scanner, "a key in double quotes");
    }
    if (!scan_string(scanner)) {
        return false;
    }
    skip_blanks(scanner);
    if (peek(scanner) != ':') {
        return unexpected(scanner, "':' behind the key");
    }
    scanner->at++;
    skip_blanks(scanner);
    return scan_value(scanner, key);
}

/* At the opening brace or bracket. */
static bool scan_group(struct scanner *scanner, char close)
{
    size_t group = scanner->scan->count - 1;
    bool more = true;

    if (scanner->depth == SPW_SCAN_DEPTH) {
        return fail(scanner, scanner->at, "nested too deep, expected at most %d levels",
                    SPW_SCAN_DEPTH);
    }
    scanner->depth++;
    scanner->at++;
    skip_blanks(scanner);
    if (peek(scanner) == close) {
        scanner->at++;
        more = false;
    }
    while (more) {
        if (!(close == '}' ? scan_member(scanner) : scan_value(scanner, scanner->at)) ||
            !scan_separator(scanner, close, &more)) {
            return false;
        }
    }
    scanner->depth--;
    scanner->scan->places[group].next = (uint32_t)scanner->scan->count;
    return true;
}

static bool scan_value(struct scanner *scanner, size_t key)
{
    int byte = peek(scanner);

    if (!add_place(scanner, key)) {
        return false;
    }
    switch (byte) {
    case '{':
        return scan_group(scanner, '}');
    case '[':
        return scan_group(scanner, ']');
    case '"':
        return scan_string(scanner);
    case 't':
        return scan_word(scanner, "true");
    case 'f':
        return scan_word(scanner, "false");
    case 'n':
        return scan_word(scanner, "null");
    default:
        return byte == '-' || (byte >= '0' && byte <= '9') ? scan_number(scanner)
                                                           : unexpected(scanner, "a value");
    }
}

static bool scan_document(struct scanner *scanner)
{
    if (scanner->length >= 3 && memcmp(scanner->text, "\xEF\xBB\xBF", 3) == 0) {
        return fail(scanner, 0, "a byte order mark, expected '{'");
    }
    skip_blanks(scanner);
    if (scanner->at == scanner->length) {
        return fail(scanner, 0, "the file is empty, expected '{'");
    }
    if (!scan_value(scanner, scanner->at)) {
        return false;
    }
    skip_blanks(scanner);
    return scanner->at == scanner->length || unexpected(scanner, "the end of the file");
}

bool spw_policy_scan(const char *text, size_t length, struct spw_scan *ret_scan)
{
    struct scanner scanner = {
        .text = (const unsigned char *)text, .length = length, .scan = ret_scan};

    *ret_scan = (struct spw_scan){0};
    if (!scan_document(&scanner)) {
        free(ret_scan->places);
        ret_scan->places = NULL;
        ret_scan->count = 0;
        return false;
    }
    return true;
}

void spw_policy_scan_advance(struct spw_scan_cursor *cursor, size_t offset)
{
    for (; cursor->offset < offset; cursor->offset++) {
        unsigned char byte = (unsigned char)cursor->text[cursor->offset];

        if (byte == '\n') {
            cursor->line++;
            cursor->column = 1;
        } else {
            cursor->column += (byte & 0xC0) != 0x80;
        }
    }
}
