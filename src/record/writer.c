#include "record/writer.h"

#include "record/checksum.h"

#include <string.h>
#include <unistd.h>

enum { CALIBRATION_NS = 1000000, NS_PER_S = 1000000000 };

uint8_t *spw_record_put_text(uint8_t *at, const char *text)
{
    size_t length = strnlen(text, SPW_RECORD_TEXT);

    at = spw_record_put(at, length);
    memcpy(at, text, length);
    return at + length;
}

/* ---- time ---- */

uint64_t spw_record_writer_clock(void)
{
    return (spw_clock_ns() - spw_record.writer.header->began_mono) / SPW_RECORD_UNIT_NS;
}

uint64_t spw_record_writer_compare(void)
{
    uint64_t time = spw_record_writer_clock();

    if (spw_record.writer.ticks) {
        spw_record_timeline_compare(&spw_record.writer.timeline, spw_record_ticks_read(), time);
    }
    return time;
}

/* Measures the rate of the processor's clock for a millisecond. */
static void start_clock(struct spw_record_writer *writer)
{
    uint64_t begin = writer->header->began_mono = spw_clock_ns();

    spw_record_timeline_begin(&writer->timeline, spw_record_ticks_read(), 0,
                              NS_PER_S / SPW_RECORD_UNIT_NS);
    writer->header->began_ns = spw_clock_read(CLOCK_REALTIME);
    writer->ticks = spw_record_ticks_are_steady();
    while (writer->ticks && spw_clock_ns() - begin < CALIBRATION_NS) {
    }
    (void)spw_record_writer_compare();
}

/* ---- blocks ---- */

/* The checksum of a block as it is stored, when it is closed. */
static uint32_t checksum(const struct spw_record_block *block, uint32_t used)
{
    struct spw_record_block head = *block;

    head.crc = 0;
    head.closed = 1;
    return spw_record_checksum(spw_record_checksum(0, &head, sizeof(head)), block + 1, used);
}

static void close_block(struct spw_record_writer *writer)
{
    struct spw_record_block *block = writer->block;
    uint32_t used = (uint32_t)(writer->at - (uint8_t *)(block + 1));

    atomic_store_explicit(&block->used, used, memory_order_relaxed);
    block->content = used;
    block->crc = checksum(block, used);
    atomic_signal_fence(memory_order_seq_cst);
    block->closed = 1; /* set last, since the process may be killed before */
    writer->block = NULL;
    writer->at = writer->end = NULL;
}

/* Begins the block at the writer's offset. */
static bool open_block(struct spw_record_writer *writer)
{
    struct spw_record_block *block;
    uint64_t now;

    if (writer->offset + SPW_RECORD_BLOCK > writer->file.map_bytes) {
        atomic_store(&writer->header->loss, SPW_RECORD_LOSS_FULL);
        return false;
    }
    if (!spw_record_file_grow(&writer->file, writer->offset + SPW_RECORD_BLOCK)) {
        atomic_store(&writer->header->loss, SPW_RECORD_LOSS_DISK);
        return false;
    }
    now = spw_record_writer_compare();
    writer->time = now > writer->time ? now : writer->time;
    block = (struct spw_record_block *)(void *)(writer->file.map + writer->offset);
    *block = (struct spw_record_block){
        .sequence = writer->sequence++,
        .stride = SPW_RECORD_BLOCK,
        .codec = SPW_RECORD_PLAIN,
        .time = writer->time,
    };
    writer->block = block;
    writer->at = (uint8_t *)(block + 1);
    writer->end = writer->file.map + writer->offset + SPW_RECORD_BLOCK;
    memset(&writer->last, 0, sizeof(writer->last));
    atomic_signal_fence(memory_order_seq_cst);
    block->magic = SPW_RECORD_BLOCK_MAGIC;
    return true;
}

bool spw_record_writer_next(void)
{
    struct spw_record_writer *writer = &spw_record.writer;

    if (writer->block != NULL) {
        close_block(writer);
        writer->offset += SPW_RECORD_BLOCK;
        return open_block(writer);
    }
    return false; /* the file was full before */
}

/* ---- the whole ---- */

bool spw_record_writer_open(const char *path, uint64_t start_ticks, uint64_t limit, bool permille,
                            uint32_t devices, int64_t rank)
{
    struct spw_record_writer *writer = &spw_record.writer;
    struct spw_record_header *header;

    memset(writer, 0, sizeof(*writer)); /* too large for a stack */
    if (!spw_record_file_begin(&writer->file, path, limit, permille,
                               SPW_RECORD_HEADER + SPW_RECORD_BLOCK)) {
        return false;
    }
    header = writer->header = (struct spw_record_header *)(void *)writer->file.map;
    *header = (struct spw_record_header){
        .version = SPW_RECORD_VERSION,
        .header_bytes = SPW_RECORD_HEADER,
        .block_bytes = SPW_RECORD_BLOCK,
        .pid = (int32_t)getpid(),
        .rank = rank,
        .limit_bytes = writer->file.map_bytes,
        .devices = devices,
        .unit_ns = SPW_RECORD_UNIT_NS,
    };
    start_clock(writer);
    header->magic = SPW_RECORD_MAGIC;
    header->crc = spw_record_checksum(0, header, offsetof(struct spw_record_header, crc));
    writer->offset = SPW_RECORD_HEADER;
    if (open_block(writer) && spw_record_file_publish(&writer->file, start_ticks,
                                                      SPW_RECORD_HEADER + sizeof(*writer->block))) {
        return true;
    }
    spw_record_writer_forget();
    return false;
}

void spw_record_writer_close(void)
{
    struct spw_record_writer *writer = &spw_record.writer;
    size_t end = writer->offset;

    if (writer->header == NULL) {
        return;
    }
    if (writer->block != NULL) {
        struct spw_record_block *block = writer->block;

        block->stride = (uint32_t)(writer->at - (uint8_t *)block + 7) / 8 * 8;
        end += block->stride;
        close_block(writer);
    }
    atomic_store(&writer->header->complete, 1);
    spw_record_file_end(&writer->file, end);
}

void spw_record_writer_forget(void)
{
    spw_record_file_forget(&spw_record.writer.file);
    spw_record.writer.header = NULL;
    spw_record.writer.block = NULL;
    spw_record.writer.at = spw_record.writer.end = NULL;
}
