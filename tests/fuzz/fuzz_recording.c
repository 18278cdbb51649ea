/* Any bytes as the blocks of a recording: the first byte chooses if they are events of a plain
 * block whose checksum is right, or blocks as they stand. Sums are of what is
 * live. */
#include "cli/recording/events.h"
#include "cli/recording/state.h"
#include "record/checksum.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

static bool put(int fd, const void *bytes, size_t count)
{
    return write(fd, bytes, count) == (ssize_t)count;
}

static bool put_header(int fd)
{
    static char page[SPW_RECORD_HEADER];
    struct spw_record_header header = {
        .magic = SPW_RECORD_MAGIC,
        .version = SPW_RECORD_VERSION,
        .header_bytes = SPW_RECORD_HEADER,
        .block_bytes = SPW_RECORD_BLOCK,
        .devices = 1,
        .unit_ns = SPW_RECORD_UNIT_NS,
    };

    header.crc = spw_record_checksum(0, &header, offsetof(struct spw_record_header, crc));
    memcpy(page, &header, sizeof(header));
    return put(fd, page, sizeof(page));
}

static bool put_block(int fd, const uint8_t *content, size_t bytes)
{
    struct spw_record_block block = {
        .magic = SPW_RECORD_BLOCK_MAGIC,
        .stride = (uint32_t)(sizeof(block) + bytes),
        .used = (uint32_t)bytes,
        .content = (uint32_t)bytes,
        .closed = 1,
    };

    block.crc = spw_record_checksum(spw_record_checksum(0, &block, sizeof(block)), content, bytes);
    return put(fd, &block, sizeof(block)) && put(fd, content, bytes);
}

static void require_sums(const struct spw_cli_state *state)
{
    uint64_t live[SPW_DEVICES_MAX] = {0};
    const struct spw_cli_block *block;
    size_t cursor = 0;

    while ((block = spw_map_next(&state->live, &cursor)) != NULL) {
        live[block->device] += block->counted;
    }
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        uint64_t held = 0;

        for (uint32_t site = 0; site < state->devices[i].held_count; site++) {
            held += state->devices[i].held[site].live;
        }
        FUZZ_REQUIRE(state->devices[i].live == live[i]);
        FUZZ_REQUIRE(held == live[i]);
    }
}

static void read_all(int fd)
{
    static struct spw_cli_events events;
    static struct spw_cli_event event;
    struct spw_cli_state state;
    struct spw_cli_block freed;
    bool is_freed;
    uint64_t time = 0;

    FUZZ_REQUIRE(spw_cli_events_open(&events, fd));
    FUZZ_REQUIRE(spw_cli_state_init(&state));
    while (spw_cli_events_next(&events, &event)) {
        FUZZ_REQUIRE(event.time >= time && event.device >= 0 && event.device < SPW_DEVICES_MAX);
        FUZZ_REQUIRE(event.text.length <= SPW_RECORD_TEXT);
        time = event.time;
        spw_cli_state_take(&state, &event, &freed, &is_freed);
    }
    require_sums(&state);
    spw_cli_state_fini(&state);
    spw_cli_events_close(&events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("recording", MFD_CLOEXEC);
    bool plain = size > 0 && (data[0] & 1) == 0;

    if (fd < 0 || size == 0) {
        return 0;
    }
    if (put_header(fd) &&
        (plain ? put_block(fd, data + 1, size - 1) : put(fd, data + 1, size - 1))) {
        read_all(fd);
    } else {
        (void)close(fd);
    }
    return 0;
}
