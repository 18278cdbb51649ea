#include "cli/report/snapshot.h"

#include <string.h>

/* Opcodes of the pickle protocol. */
enum {
    PROTO = 0x80,
    STOP = '.',
    EMPTY_DICT = '}',
    EMPTY_LIST = ']',
    SETITEM = 's',
    APPEND = 'a',
    BINUNICODE = 'X',
    BININT = 'J',
    LONG1 = 0x8a,
    NEWTRUE = 0x88,
    NEWFALSE = 0x89,
    TUPLE2 = 0x86,
    LONG_BINPUT = 'r',
    LONG_BINGET = 'j',
};

static void put_bytes(struct spw_writer *out, const void *bytes, size_t count)
{
    const char *at = bytes;

    while (count > 0) {
        size_t part = sizeof(out->buffer) - out->used;

        part = part < count ? part : count;
        memcpy(out->buffer + out->used, at, part);
        out->used += part;
        at += part;
        count -= part;
        if (out->used == sizeof(out->buffer)) {
            spw_write_flush(out);
        }
    }
}

static void put_opcode(struct spw_cli_snapshot *snapshot, int opcode)
{
    uint8_t byte = (uint8_t)opcode;

    put_bytes(snapshot->out, &byte, 1);
}

static void put_word(struct spw_cli_snapshot *snapshot, uint32_t word)
{
    uint8_t bytes[] = {(uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16),
                       (uint8_t)(word >> 24)};

    put_bytes(snapshot->out, bytes, sizeof(bytes));
}

/* ---- elements ---- */

/* Begins a value: in a JSON list, writes the comma before it. */
static void separate(struct spw_cli_snapshot *snapshot)
{
    int level = snapshot->depth - 1;

    if (!snapshot->pickle && level >= 0 && !snapshot->levels[level].dictionary) {
        spw_write(snapshot->out, snapshot->levels[level].any ? ", " : "");
        snapshot->levels[level].any = true;
    }
}

/* Ends a value: in a pickle, adds it to the open list or dictionary. */
static void add(struct spw_cli_snapshot *snapshot)
{
    if (snapshot->pickle && snapshot->depth > 0) {
        put_opcode(snapshot, snapshot->levels[snapshot->depth - 1].dictionary ? SETITEM : APPEND);
    }
}

static void put_string(struct spw_cli_snapshot *snapshot, const char *text)
{
    size_t length = strlen(text);

    put_opcode(snapshot, BINUNICODE);
    put_word(snapshot, (uint32_t)length);
    put_bytes(snapshot->out, text, length);
}

static void put_integer(struct spw_cli_snapshot *snapshot, uint64_t number)
{
    uint8_t bytes[9] = {0};

    if (number <= INT32_MAX) {
        put_opcode(snapshot, BININT);
        put_word(snapshot, (uint32_t)number);
        return;
    }
    for (int i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(number >> 8 * i);
    }
    put_opcode(snapshot, LONG1);
    put_opcode(snapshot, number >> 63 != 0 ? 9 : 8);
    put_bytes(snapshot->out, bytes, number >> 63 != 0 ? 9 : 8);
}

/* ---- the interface ---- */

void spw_cli_snapshot_begin(struct spw_cli_snapshot *snapshot)
{
    if (snapshot->pickle) {
        put_opcode(snapshot, PROTO);
        put_opcode(snapshot, 2);
    }
}

void spw_cli_snapshot_end(struct spw_cli_snapshot *snapshot)
{
    if (snapshot->pickle) {
        put_opcode(snapshot, STOP);
    } else {
        spw_write(snapshot->out, "\n");
    }
}

void spw_cli_snapshot_open(struct spw_cli_snapshot *snapshot, bool dictionary)
{
    separate(snapshot);
    if (snapshot->pickle) {
        put_opcode(snapshot, dictionary ? EMPTY_DICT : EMPTY_LIST);
    } else {
        spw_write(snapshot->out, dictionary ? "{" : "[");
    }
    snapshot->levels[snapshot->depth].dictionary = dictionary;
    snapshot->levels[snapshot->depth].any = false;
    snapshot->depth++;
}

static void shut(struct spw_cli_snapshot *snapshot)
{
    snapshot->depth--;
    if (!snapshot->pickle) {
        spw_write(snapshot->out, snapshot->levels[snapshot->depth].dictionary ? "}" : "]");
    }
}

void spw_cli_snapshot_close(struct spw_cli_snapshot *snapshot)
{
    shut(snapshot);
    add(snapshot);
}

void spw_cli_snapshot_key(struct spw_cli_snapshot *snapshot, const char *key)
{
    int level = snapshot->depth - 1;

    if (snapshot->pickle) {
        put_string(snapshot, key);
        return;
    }
    spw_write(snapshot->out, snapshot->levels[level].any ? ", " : "");
    snapshot->levels[level].any = true;
    spw_write_string(snapshot->out, key);
    spw_write(snapshot->out, ": ");
}

void spw_cli_snapshot_number(struct spw_cli_snapshot *snapshot, uint64_t number)
{
    separate(snapshot);
    if (snapshot->pickle) {
        put_integer(snapshot, number);
    } else {
        spw_write_number(snapshot->out, number);
    }
    add(snapshot);
}

void spw_cli_snapshot_text(struct spw_cli_snapshot *snapshot, const char *text)
{
    separate(snapshot);
    if (snapshot->pickle) {
        put_string(snapshot, text);
    } else {
        spw_write_string(snapshot->out, text);
    }
    add(snapshot);
}

void spw_cli_snapshot_boolean(struct spw_cli_snapshot *snapshot, bool value)
{
    separate(snapshot);
    if (snapshot->pickle) {
        put_opcode(snapshot, value ? NEWTRUE : NEWFALSE);
    } else {
        spw_write(snapshot->out, value ? "true" : "false");
    }
    add(snapshot);
}

void spw_cli_snapshot_pair(struct spw_cli_snapshot *snapshot, uint64_t first, uint64_t second)
{
    if (snapshot->pickle) {
        put_integer(snapshot, first);
        put_integer(snapshot, second);
        put_opcode(snapshot, TUPLE2);
        add(snapshot);
        return;
    }
    spw_cli_snapshot_open(snapshot, /* dictionary */ false);
    spw_cli_snapshot_number(snapshot, first);
    spw_cli_snapshot_number(snapshot, second);
    spw_cli_snapshot_close(snapshot);
}

uint32_t spw_cli_snapshot_close_kept(struct spw_cli_snapshot *snapshot)
{
    uint32_t kept = 0;

    shut(snapshot);
    if (snapshot->pickle) {
        kept = ++snapshot->memos;
        put_opcode(snapshot, LONG_BINPUT);
        put_word(snapshot, kept);
    }
    add(snapshot);
    return kept;
}

void spw_cli_snapshot_again(struct spw_cli_snapshot *snapshot, uint32_t kept)
{
    separate(snapshot);
    put_opcode(snapshot, LONG_BINGET);
    put_word(snapshot, kept);
    add(snapshot);
}
