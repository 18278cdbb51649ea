/* The tree with its places, memory and complaints. */
#include "common/grow.h"
#include "policy/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 16 * 1024, SHOWN_BYTES = SPW_POLICY_SHOWN - 8 };

/* Memory is handed out in order and freed as a whole. */
struct block {
    struct block *next;
    size_t used;
    size_t capacity;
    _Alignas(max_align_t) char data[];
};

struct spw_policy_memory {
    struct block *blocks;
};

static struct block *add_block(struct spw_policy_memory *memory, size_t bytes)
{
    size_t capacity = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    struct block *block = calloc(1, sizeof(*block) + capacity);

    if (block != NULL) {
        block->capacity = capacity;
        block->next = memory->blocks;
        memory->blocks = block;
    }
    return block;
}

void *spw_policy_allocate(struct spw_policy_reader *reader, size_t bytes)
{
    size_t aligned =
        (bytes + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    struct block *block;
    void *result;

    if (reader->memory == NULL) {
        reader->memory = calloc(1, sizeof(*reader->memory));
    }
    block = reader->memory != NULL ? reader->memory->blocks : NULL;
    if (reader->memory != NULL && (block == NULL || block->capacity - block->used < aligned)) {
        block = add_block(reader->memory, aligned);
    }
    if (block == NULL) {
        reader->no_memory = true;
        return NULL;
    }
    result = block->data + block->used;
    block->used += aligned;
    return result;
}

void spw_policy_memory_free(struct spw_policy_memory *memory)
{
    struct block *next;

    if (memory == NULL) {
        return;
    }
    for (struct block *block = memory->blocks; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    free(memory);
}

/* Inserts a complaint in the order of the file, behind earlier complaints about the same place. */
static void add_complaint(struct spw_policy_reader *reader, size_t offset, char *text)
{
    struct spw_policy_complaints *complaints = reader->complaints;
    size_t at = complaints->count;

    if (!SPW_RESIZE(&complaints->items, at + 1)) {
        reader->no_memory = true;
        free(text);
        return;
    }
    for (; at > 0 && complaints->items[at - 1].offset > offset; at--) {
        complaints->items[at] = complaints->items[at - 1];
    }
    complaints->items[at] = (struct spw_policy_complaint){offset, 1, 1, text};
    complaints->count++;
}

void spw_policy_complain(struct spw_policy_reader *reader, size_t offset, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        reader->no_memory = true;
        return;
    }
    add_complaint(reader, offset, text);
}

/* A child of the tree and its place must both exist, or neither. */
static struct spw_policy_node pair(struct spw_policy_reader *reader, const cJSON *json,
                                   size_t place, size_t end)
{
    if ((json != NULL) != (place < end)) {
        reader->torn = true;
        json = NULL;
    }
    return (struct spw_policy_node){json, place, end};
}

struct spw_policy_node spw_policy_first(struct spw_policy_reader *reader,
                                        struct spw_policy_node group)
{
    return pair(reader, group.json->child, group.place + 1, reader->scan->places[group.place].next);
}

struct spw_policy_node spw_policy_next(struct spw_policy_reader *reader,
                                       struct spw_policy_node node)
{
    return pair(reader, node.json->next, reader->scan->places[node.place].next, node.end);
}

size_t spw_policy_place(const struct spw_policy_reader *reader, struct spw_policy_node node)
{
    return reader->scan->places[node.place].value;
}

/* The length in bytes of the number, word or string at `text`. */
static size_t source_length(const char *text, size_t length)
{
    size_t at = 1;

    if (*text != '"') {
        while (at < length && strchr(" \t\r\n,]}", text[at]) == NULL) {
            at++;
        }
        return at;
    }
    while (at < length && text[at] != '"') {
        at += text[at] == '\\' ? 2 : 1;
    }
    return at < length ? at + 1 : length;
}

const char *spw_policy_source(const struct spw_policy_reader *reader, size_t offset,
                              char text[SPW_POLICY_SHOWN])
{
    const char *source = reader->text + offset;
    size_t length = source_length(source, reader->length - offset);
    bool cut = length > SHOWN_BYTES;

    length = cut ? SHOWN_BYTES : length;
    while (cut && ((unsigned char)source[length] & 0xC0) == 0x80) {
        length--;
    }
    snprintf(text, SPW_POLICY_SHOWN, "%.*s%s", (int)length, source, cut ? "..." : "");
    return text;
}

/* A value as the file spells it. For a group only its kind. */
static const char *show_value(const struct spw_policy_reader *reader, struct spw_policy_node node,
                              char text[SPW_POLICY_SHOWN])
{
    if (spw_policy_json_is(node.json, cJSON_Object)) {
        return "an object";
    }
    if (spw_policy_json_is(node.json, cJSON_Array)) {
        return node.json->child != NULL ? "a list" : "an empty list";
    }
    return spw_policy_source(reader, spw_policy_place(reader, node), text);
}

void spw_policy_complain_value(struct spw_policy_reader *reader, const struct spw_policy_row *row,
                               struct spw_policy_node node, const char *why, const char *nearest)
{
    char expected[SPW_POLICY_EXPECTED];
    char value[SPW_POLICY_SHOWN];

    spw_policy_complain(
        reader, spw_policy_place(reader, node), "\"%s\" is %s%s%s, expected %s%s%s%s", row->key,
        show_value(reader, node, value), why != NULL ? ", " : "", why != NULL ? why : "",
        spw_policy_expected(row, expected), nearest != NULL ? " (did you mean \"" : "",
        nearest != NULL ? nearest : "", nearest != NULL ? "\"?)" : "");
}

void spw_policy_complaints_fini(struct spw_policy_complaints *complaints)
{
    for (size_t i = 0; i < complaints->count; i++) {
        free(complaints->items[i].text);
    }
    free(complaints->items);
    *complaints = (struct spw_policy_complaints){0};
}
