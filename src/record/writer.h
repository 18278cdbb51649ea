/* Appends events to the blocks of the file (format.h).
 *
 * Locking: the caller holds spw_locks.record, except for functions marked "No lock". Unless an
 * append begins a new block, it makes no system call and allocates nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/likely.h"
#include "record/state.h"
#include "record/ticks.h"

enum { SPW_RECORD_ROOM = 320 }; /* most bytes of an event without texts and frames */

/* Creates the file and its first block. On failure, logs one line and returns false. */
bool spw_record_writer_open(const char *path, uint64_t start_ticks, uint64_t limit, bool permille,
                            uint32_t devices, int64_t rank);

/* Closes the block, and truncates the file behind it. */
void spw_record_writer_close(void);

/* In a child after fork: closes the parent's file. No lock. */
void spw_record_writer_forget(void);

/* Closes the block and begins the next one. Returns false if the file is full. */
bool spw_record_writer_next(void);

/* Returns the time since the recording began, in units, by the system's clock. No lock. */
uint64_t spw_record_writer_clock(void);

/* Like spw_record_writer_clock. Also compares the processor's clock with the system's. */
uint64_t spw_record_writer_compare(void);

/* ---- appending an event ---- */

static inline uint8_t *spw_record_put(uint8_t *at, uint64_t number)
{
    while (number >= 0x80) {
        *at++ = (uint8_t)(number | 0x80);
        number >>= 7;
    }
    *at++ = (uint8_t)number;
    return at;
}

static inline uint8_t *spw_record_put_signed(uint8_t *at, int64_t number)
{
    return spw_record_put(at, (uint64_t)number << 1 ^ (uint64_t)(number >> 63));
}

static inline uint64_t spw_record_now(const struct spw_record_writer *writer)
{
    uint64_t time;

    return writer->ticks &&
                   spw_record_timeline_now(&writer->timeline, spw_record_ticks_read(), &time)
               ? time
               : spw_record_writer_compare();
}

/* Begins an event: writes its first byte, with the flags in `head`, and the time. Returns NULL if
 * the file has no room for `room` more bytes. The caller writes the rest of the event and calls
 * spw_record_end. */
static inline uint8_t *spw_record_begin(unsigned head, int device, uint64_t stream, uint32_t thread,
                                        size_t room)
{
    struct spw_record_writer *writer = &spw_record.writer;
    struct spw_record_context *last = &writer->last;
    uint8_t *at;
    uint64_t now;

    if (SPW_UNLIKELY((size_t)(writer->end - writer->at) < room) && !spw_record_writer_next()) {
        return NULL;
    }
    now = spw_record_now(writer);
    now = now > writer->time ? now : writer->time;
    head |= (device != last->device ? SPW_RECORD_HAS_DEVICE : 0u) |
            (stream != last->stream ? SPW_RECORD_HAS_STREAM : 0u) |
            (thread != last->thread ? SPW_RECORD_HAS_THREAD : 0u);
    at = writer->at;
    *at++ = (uint8_t)head;
    at = spw_record_put(at, now - writer->time);
    writer->time = now;
    if ((head & SPW_RECORD_HAS_DEVICE) != 0) {
        at = spw_record_put(at, (uint64_t)device);
        last->device = device;
    }
    if ((head & SPW_RECORD_HAS_STREAM) != 0) {
        at = spw_record_put(at, stream);
        last->stream = stream;
    }
    if ((head & SPW_RECORD_HAS_THREAD) != 0) {
        at = spw_record_put(at, thread);
        last->thread = thread;
    }
    return at;
}

/* Begins an event that belongs to no stream. */
static inline uint8_t *spw_record_begin_plain(unsigned head, int device, size_t room)
{
    return spw_record_begin(head, device, spw_record.writer.last.stream,
                            spw_record.writer.last.thread, room);
}

/* Ends an event. The event is then a part of the recording. */
static inline void spw_record_end(uint8_t *at)
{
    struct spw_record_writer *writer = &spw_record.writer;
    uint8_t *content = (uint8_t *)(writer->block + 1);

    writer->at = at;
    atomic_store_explicit(&writer->header->events,
                          atomic_load_explicit(&writer->header->events, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&writer->block->used, (uint32_t)(at - content), memory_order_release);
}

/* Writes an address, as the difference to the previous address. */
static inline uint8_t *spw_record_put_address(uint8_t *at, uint64_t address)
{
    struct spw_record_context *last = &spw_record.writer.last;
    uint64_t units = address >> 8;

    at = spw_record_put_signed(at, (int64_t)(units - last->address));
    last->address = units;
    return at;
}

/* Writes the length and the bytes of a text, which is truncated to SPW_RECORD_TEXT bytes. */
uint8_t *spw_record_put_text(uint8_t *at, const char *text);
