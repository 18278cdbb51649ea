/* The statistics of a hostile process: a valid file of shared memory (stats/stats.h), changed at
 * places that the input chooses, is read and written as a statistics file. Every change of the
 * input is an offset (4 bytes, taken modulo the size), a count, and that many bytes. */
#include "stats/file.h"
#include "stats/output.h"
#include "stats/stats.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

static void put(int fd, size_t at, const void *bytes, size_t count)
{
    FUZZ_REQUIRE(pwrite(fd, bytes, count, (off_t)at) == (ssize_t)count);
}

static void put_valid(int fd)
{
    static struct spw_stats stats;

    stats.magic = SPW_STATS_MAGIC;
    stats.version = SPW_STATS_VERSION;
    stats.bytes = sizeof(stats);
    stats.device_count = 2;
    (void)snprintf(stats.rule_names[0], sizeof(stats.rule_names[0]), "embeddings");
    (void)snprintf(stats.call_names[0], sizeof(stats.call_names[0]), "cuMemCreate");
    put(fd, 0, &stats, sizeof(stats));
}

static void change(int fd, const uint8_t *data, size_t size)
{
    while (size >= 6) {
        uint32_t at;
        size_t count = data[4] % 16 + 1;

        memcpy(&at, data, sizeof(at));
        at %= sizeof(struct spw_stats);
        count = count < size - 5 ? count : size - 5;
        count = count < sizeof(struct spw_stats) - at ? count : sizeof(struct spw_stats) - at;
        put(fd, at, data + 5, count);
        data += 5 + count;
        size -= 5 + count;
    }
}

#define REQUIRE_END(text) FUZZ_REQUIRE((text)[sizeof(text) - 1] == '\0')

static void require_bounds(const struct spw_stats *stats)
{
    FUZZ_REQUIRE(stats->device_count >= 0 && stats->device_count <= SPW_DEVICES_MAX);
    FUZZ_REQUIRE(stats->rank >= -1 && stats->rank <= INT32_MAX);
    REQUIRE_END(stats->sites);
    REQUIRE_END(stats->policy);
    for (int i = 0; i < SPW_ACCOUNTS; i++) {
        REQUIRE_END(stats->rule_names[i]);
    }
    for (int i = 0; i < SPW_STATS_CALLS; i++) {
        REQUIRE_END(stats->call_names[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct spw_stats stats;
    int fd = memfd_create("stats", MFD_CLOEXEC);

    if (fd < 0) {
        return 0;
    }
    put_valid(fd);
    FUZZ_REQUIRE(spw_stats_read(fd, &stats));
    change(fd, data, size);
    if (spw_stats_read(fd, &stats)) {
        require_bounds(&stats);
        spw_stats_output_set(SPW_STATS_FILE, "/dev/null");
        FUZZ_REQUIRE(spw_stats_write(&stats));
    }
    (void)close(fd);
    return 0;
}
