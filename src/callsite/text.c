#include "callsite/text.h"

#include "common/nearest.h"
#include "common/path.h"
#include "common/size.h"
#include "common/utf8.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_PER_TEXT = 256 };

const char *spw_callsite_module_class(const struct spw_callsite_facts *site)
{
    return site->modules == NULL ? NULL : spw_path_name(site->modules);
}

/* --- printing --- */

struct printer {
    char *buffer;
    size_t capacity;
    size_t length;
};

static void put(struct printer *printer, char byte)
{
    if (printer->length + 1 < printer->capacity) {
        printer->buffer[printer->length] = byte;
    }
    printer->length++;
}

static void put_text(struct printer *printer, const char *text)
{
    for (; *text != '\0'; text++) {
        put(printer, *text);
    }
}

static void put_escaped(struct printer *printer, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char escaped[8];

        snprintf(escaped, sizeof(escaped), "\\x%02x", (unsigned char)bytes[i]);
        put_text(printer, escaped);
    }
}

/* Prints a name. Escapes bytes that would end it (the semicolon and those in `also`), blanks at its
 * ends, control characters, and bytes that are not UTF-8. */
static void put_name(struct printer *printer, const char *name, const char *also)
{
    size_t length = 0;

    for (const char *at = name; at != NULL && *at != '\0'; at += length) {
        bool outer_blank = *at == ' ' && (at == name || at[1] == '\0');

        length = spw_utf8_length(at);
        if (length == 0 || outer_blank || spw_utf8_is_control(at, length)) {
            length = length > 0 ? length : 1;
            put_escaped(printer, at, length);
            continue;
        }
        if (*at == '\\' || *at == ';' || strchr(also, *at) != NULL) {
            put(printer, '\\');
        }
        for (size_t i = 0; i < length; i++) {
            put(printer, at[i]);
        }
    }
}

static void put_key(struct printer *printer, const char *key)
{
    if (printer->length > 0) {
        put_text(printer, "; ");
    }
    put_text(printer, key);
    put(printer, ':');
}

static void put_number(struct printer *printer, const char *key, uint64_t number)
{
    char text[BYTES_PER_TEXT];

    snprintf(text, sizeof(text), "%" PRIu64, number);
    if (key != NULL) {
        put_key(printer, key);
    }
    put_text(printer, text);
}

/* Prints a size exactly: with a unit only if nothing is rounded. */
static void put_size(struct printer *printer, uint64_t bytes)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;

    while (bytes % 1024 == 0 && unit + 1 < sizeof(units) / sizeof(*units)) {
        bytes /= 1024;
        unit++;
    }
    put_number(printer, "size", bytes);
    put_text(printer, units[unit]);
}

static void put_frames(struct printer *printer, const struct spw_callsite_facts *site)
{
    for (size_t i = 0; i < site->python_count; i++) {
        put_key(printer, "python");
        put_name(printer, site->python[i].file, ":");
        put(printer, ':');
        put_name(printer, site->python[i].function, ":");
        put(printer, ':');
        if (site->python[i].line != 0) {
            put_number(printer, NULL, site->python[i].line);
        }
    }
    for (size_t i = 0; i < site->native_count; i++) {
        put_key(printer, "native");
        put_name(printer, site->native[i].library, ":");
        put(printer, ':');
        put_name(printer, site->native[i].symbol, "");
    }
}

static void put_text_of(struct printer *printer, const char *key, const char *name)
{
    if (name != NULL && *name != '\0') {
        put_key(printer, key);
        put_name(printer, name, "");
    }
}

size_t spw_callsite_print(const struct spw_callsite_facts *site,
                          const struct spw_request_facts *request, char *buffer, size_t capacity)
{
    struct printer printer = {.buffer = buffer, .capacity = capacity};

    put_frames(&printer, site);
    put_text_of(&printer, "thread", site->thread);
    put_text_of(&printer, "tag", site->tag);
    put_text_of(&printer, "node", site->node);
    put_text_of(&printer, "module", site->modules);
    put_text_of(&printer, "process", site->process);
    if (site->rank >= 0) {
        put_number(&printer, "rank", (uint64_t)site->rank);
    }
    if (request != NULL && request->size != 0) {
        put_size(&printer, request->size);
    }
    if (request != NULL && request->device >= 0) {
        put_number(&printer, "device", (uint64_t)request->device);
    }
    if (request != NULL) {
        put_text_of(&printer, "api", request->api);
    }
    if (request != NULL && request->nth != 0) {
        put_number(&printer, "nth", request->nth);
    }
    if (request != NULL && request->nth_in_step != 0) {
        put_number(&printer, "nth_in_step", request->nth_in_step);
    }
    if (capacity > 0) {
        buffer[printer.length < capacity ? printer.length : capacity - 1] = '\0';
    }
    return printer.length;
}

/* --- reading --- */

struct reader {
    const char *start;
    const char *at;
    struct spw_callsite_text *site;
    char *complaint;
    size_t capacity;
};

struct entry {
    const char *key;
    bool (*read)(struct reader *reader, struct spw_callsite_text *site); /* NULL: reads a name */
    size_t name; /* offset of the name in struct spw_callsite_text */
};

static bool complain(struct reader *reader, const char *at, const char *what)
{
    size_t character = 1;

    for (const char *byte = reader->start; byte < at; byte++) {
        character += ((unsigned char)*byte & 0xC0) != 0x80;
    }
    snprintf(reader->complaint, reader->capacity, "character %zu: %s", character, what);
    return false;
}

static void skip_blanks(struct reader *reader)
{
    reader->at += strspn(reader->at, " \t\n");
}

static int hex_digit(char digit)
{
    if (isdigit((unsigned char)digit)) {
        return digit - '0';
    }
    return isxdigit((unsigned char)digit) ? tolower((unsigned char)digit) - 'a' + 10 : -1;
}

/* The byte at the reader's place, without its escape; 0 for a backslash at the end. */
static char next_byte(struct reader *reader)
{
    if (*reader->at != '\\') {
        return *reader->at++;
    }
    reader->at++;
    if (*reader->at == 'x' && hex_digit(reader->at[1]) >= 0 && hex_digit(reader->at[2]) >= 0) {
        char byte = (char)(hex_digit(reader->at[1]) << 4 | hex_digit(reader->at[2]));

        reader->at += 3;
        return byte;
    }
    return *reader->at != '\0' ? *reader->at++ : '\0';
}

/* Reads a name up to a byte of `ends` or the end of the entry. Blanks at the end of the name do not
 * count. An empty name is NULL. */
static bool read_name(struct reader *reader, const char *ends, const char **ret_name)
{
    struct spw_callsite_text *site = reader->site;
    const char *start = reader->at;
    size_t first = site->used;
    size_t end = first; /* behind the last byte that is not an unescaped blank */

    while (*reader->at != '\0' && *reader->at != ';' && strchr(ends, *reader->at) == NULL) {
        bool blank = isspace((unsigned char)*reader->at);
        char byte = next_byte(reader);

        if (byte == '\0') {
            return complain(reader, reader->at - 1,
                            "a backslash at the end, expected a character or xNN after it");
        }
        if (site->used + 2 > sizeof(site->storage)) {
            return complain(reader, start, "the text is too long, expected at most 256 KiB");
        }
        site->storage[site->used++] = byte;
        end = blank ? end : site->used;
    }
    site->used = end;
    *ret_name = end > first ? site->storage + first : NULL;
    site->storage[site->used++] = '\0';
    return true;
}

static bool expect_colon(struct reader *reader, const char *form)
{
    if (*reader->at != ':') {
        return complain(reader, reader->at, form);
    }
    reader->at++;
    return true;
}

/* Reads a number that has only digits and is at most `most`. */
static bool read_number(struct reader *reader, uint64_t most, uint64_t *ret_number)
{
    const char *start = reader->at;
    const char *text;
    char *end;

    if (!read_name(reader, "", &text)) {
        return false;
    }
    if (text == NULL || text[strspn(text, "0123456789")] != '\0' || strlen(text) > 19) {
        return complain(reader, start, "not a number, expected 0, 1, 2, ...");
    }
    *ret_number = strtoull(text, &end, 10);
    if (*ret_number > most) {
        return complain(reader, start, "the number is too large");
    }
    return true;
}

static bool read_python(struct reader *reader, struct spw_callsite_text *site)
{
    static const char form[] = "expected python:FILE:FUNCTION:LINE";
    struct spw_python_frame frame = {0};
    uint64_t line = 0;

    if (site->site.python_count == SPW_CALLSITE_FRAMES) {
        return complain(reader, reader->at, "too many python frames, expected at most 128");
    }
    if (!read_name(reader, ":", &frame.file) || !expect_colon(reader, form) ||
        !read_name(reader, ":", &frame.function) || !expect_colon(reader, form)) {
        return false;
    }
    skip_blanks(reader);
    if (*reader->at != '\0' && *reader->at != ';' && !read_number(reader, INT_MAX, &line)) {
        return false;
    }
    frame.line = (uint32_t)line;
    site->python[site->site.python_count++] = frame;
    return true;
}

static bool read_native(struct reader *reader, struct spw_callsite_text *site)
{
    struct spw_native_frame frame = {0};

    if (site->site.native_count == SPW_CALLSITE_FRAMES) {
        return complain(reader, reader->at, "too many native frames, expected at most 128");
    }
    if (!read_name(reader, ":", &frame.library) ||
        !expect_colon(reader, "expected native:LIBRARY:SYMBOL") ||
        !read_name(reader, "", &frame.symbol)) {
        return false;
    }
    site->native[site->site.native_count++] = frame;
    return true;
}

static bool read_rank(struct reader *reader, struct spw_callsite_text *site)
{
    uint64_t number;

    if (!read_number(reader, INT_MAX, &number)) {
        return false;
    }
    site->site.rank = (int64_t)number;
    return true;
}

static bool read_device(struct reader *reader, struct spw_callsite_text *site)
{
    uint64_t number;

    if (!read_number(reader, INT_MAX, &number)) {
        return false;
    }
    site->request.device = (int)number;
    return true;
}

static bool read_nth(struct reader *reader, struct spw_callsite_text *site)
{
    return read_number(reader, INT64_MAX, &site->request.nth);
}

static bool read_nth_in_step(struct reader *reader, struct spw_callsite_text *site)
{
    return read_number(reader, UINT32_MAX, &site->request.nth_in_step);
}

static bool read_size(struct reader *reader, struct spw_callsite_text *site)
{
    const char *start = reader->at;
    const char *text;
    bool percent;

    if (!read_name(reader, "", &text)) {
        return false;
    }
    if (text == NULL || !spw_size_parse(text, &site->request.size, &percent) || percent) {
        return complain(reader, start, "not a size, expected 12MiB or a number of bytes");
    }
    return true;
}

static const struct entry entries[] = {
    {"python", .read = read_python},
    {"native", .read = read_native},
    {"thread", .name = offsetof(struct spw_callsite_text, site.thread)},
    {"tag", .name = offsetof(struct spw_callsite_text, site.tag)},
    {"node", .name = offsetof(struct spw_callsite_text, site.node)},
    {"module", .name = offsetof(struct spw_callsite_text, site.modules)},
    {"process", .name = offsetof(struct spw_callsite_text, site.process)},
    {"rank", .read = read_rank},
    {"size", .read = read_size},
    {"device", .read = read_device},
    {"api", .name = offsetof(struct spw_callsite_text, request.api)},
    {"nth", .read = read_nth},
    {"nth_in_step", .read = read_nth_in_step},
};

enum { ENTRY_COUNT = sizeof(entries) / sizeof(*entries) };

static bool complain_key(struct reader *reader, const char *key, size_t length)
{
    const char *keys[ENTRY_COUNT];
    char what[BYTES_PER_TEXT];
    char text[64];
    const char *nearest;

    for (int i = 0; i < ENTRY_COUNT; i++) {
        keys[i] = entries[i].key;
    }
    snprintf(text, sizeof(text), "%.*s", length > 60 ? 60 : (int)length, key);
    nearest = spw_nearest(text, 0, keys, ENTRY_COUNT);
    snprintf(
        what, sizeof(what),
        "\"%s\" is not a key of a site, expected KEY:VALUE with one of python, native, thread, "
        "node, module, process, rank, size, device, api, nth, nth_in_step%s%s%s",
        text, nearest != NULL ? " (did you mean " : "", nearest != NULL ? nearest : "",
        nearest != NULL ? "?)" : "");
    return complain(reader, key, what);
}

static bool read_entry(struct reader *reader)
{
    const char *key = reader->at;
    size_t length = strcspn(key, ":;");

    for (const struct entry *entry = entries; entry < entries + ENTRY_COUNT; entry++) {
        if (strlen(entry->key) == length && strncmp(entry->key, key, length) == 0 &&
            key[length] == ':') {
            reader->at += length + 1;
            skip_blanks(reader);
            return entry->read != NULL
                       ? entry->read(reader, reader->site)
                       : read_name(reader, "", (const char **)((char *)reader->site + entry->name));
        }
    }
    return complain_key(reader, key, length);
}

bool spw_callsite_parse(const char *text, struct spw_callsite_text *ret_site, char *complaint,
                        size_t capacity)
{
    struct reader reader = {
        .start = text, .at = text, .site = ret_site, .complaint = complaint, .capacity = capacity};

    ret_site->used = 0;
    ret_site->site = (struct spw_callsite_facts){
        .python = ret_site->python, .native = ret_site->native, .rank = -1};
    ret_site->request = (struct spw_request_facts){.device = -1};
    skip_blanks(&reader);
    while (*reader.at != '\0') {
        if (!read_entry(&reader)) {
            return false;
        }
        if (*reader.at == ';') {
            reader.at++;
        }
        skip_blanks(&reader);
    }
    return true;
}
