/* The call sites of a hostile process: a valid file of shared memory (callsite/shm.h), changed at
 * places that the input chooses, is read and shown as `spillway top` shows it. Every change of the
 * input is a part of the file (1 byte), an offset in it (2 bytes), a count, and that many bytes. */
#include "callsite/facts.h"
#include "callsite/top_sites.h"
#include "callsite/capture.h"
#include "cli/inspect/call_sites.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

#define PART(member) offsetof(struct spw_callsite_shm, member)

static const size_t parts[] = {
    0,           PART(charges), PART(apis), PART(offsets), PART(modules),
    PART(texts), PART(sites),   PART(held), PART(pinned),  PART(held_pinned),
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]), SITES = 3 };

static void put(int fd, size_t at, const void *bytes, size_t count)
{
    FUZZ_REQUIRE(pwrite(fd, bytes, count, (off_t)at) == (ssize_t)count);
}

/* Three sites: each has two native frames and one of Python. */
static void put_valid(int fd)
{
    static const char texts[] = "\0cuMemAlloc\0main\0train.py\0step";
    static const struct spw_callsite site = {.native_count = 2, .python_count = 1, .thread = 12};
    static const struct spw_callsite_line line = {.file = 17, .function = 26, .line = 4};
    const uint64_t native[2] = {(uintptr_t)put_valid + 8, 0x1234};
    const size_t bytes = sizeof(site) + sizeof(native) + sizeof(line);
    struct spw_module module = {.begin = 0x1000, .end = 0x2000, .path = "/proc/self/exe"};
    uint32_t head[4] = {SPW_CALLSITE_SHM_MAGIC, SPW_CALLSITE_SHM_VERSION};
    uint64_t whole = sizeof(struct spw_callsite_shm);
    uint32_t counts[4] = {SITES, 1, sizeof(texts), 1};

    put(fd, 0, head, 2 * sizeof(head[0]));
    put(fd, PART(bytes), &whole, sizeof(whole));
    put(fd, PART(count), counts, sizeof(counts));
    put(fd, PART(texts), texts, sizeof(texts));
    put(fd, PART(modules), &module, sizeof(module));
    for (uint32_t i = 1; i <= SITES; i++) {
        size_t at = (size_t)(i - 1) * ((bytes + 7) & ~(size_t)7);
        uint32_t unit = (uint32_t)(at / 8), api = 1;
        struct spw_charge charge = {.live = (uint64_t)i << 20, .allocs = i};

        put(fd, PART(apis) + i * sizeof(api), &api, sizeof(api));
        put(fd, PART(offsets) + i * sizeof(unit), &unit, sizeof(unit));
        put(fd, PART(sites) + at, &site, sizeof(site));
        put(fd, PART(sites) + at + sizeof(site), native, sizeof(native));
        put(fd, PART(sites) + at + sizeof(site) + sizeof(native), &line, sizeof(line));
        put(fd, PART(held) + i * sizeof(charge), &charge, sizeof(charge));
        put(fd, PART(held_pinned) + i * sizeof(charge), &charge, sizeof(charge));
    }
}

static void change(int fd, const uint8_t *data, size_t size)
{
    while (size >= 5) {
        size_t at = parts[data[0] % PARTS] + data[1] + ((size_t)data[2] << 8);
        size_t count = data[3] % 16 + 1;

        count = count < size - 4 ? count : size - 4;
        put(fd, at, data + 4, count);
        data += 4 + count;
        size -= 4 + count;
    }
}

/* Sites lie one behind the other, and each within its bounds. */
static const char *require_bounds(const struct spw_callsite *site, const char *end)
{
    FUZZ_REQUIRE(site != NULL && (const char *)site >= end);
    FUZZ_REQUIRE(site->native_count <= SPW_CALLSITE_NATIVE);
    FUZZ_REQUIRE(site->python_count <= SPW_CALLSITE_PYTHON);
    return (const char *)(spw_callsite_lines(site) + site->python_count);
}

static void show(const struct spw_callsite_shm *share)
{
    static struct spw_callsite_holding holding;
    static struct spw_callsite_words words;
    uint32_t count = spw_callsite_table_count(spw_callsite_known());
    const char *end = share->sites;

    FUZZ_REQUIRE(count <= SPW_CALLSITE_MOST);
    for (uint32_t i = 1; i <= count; i++) {
        const struct spw_callsite *site = spw_callsite_table_get(spw_callsite_known(), i);
        char text[4096];

        end = require_bounds(site, end);
        spw_callsite_describe(site, /* native */ true, &words);
        (void)spw_callsite_print(&words.facts, NULL, text, sizeof(text));
        FUZZ_REQUIRE(strnlen(text, sizeof(text)) < sizeof(text));
    }
    for (uint32_t i = 0; i < share->devices; i++) {
        spw_callsite_holding(&share->charges[i], /* missing_bytes */ 1 << 20, &holding);
        FUZZ_REQUIRE(holding.count >= 0 && holding.count <= SPW_CALLSITE_HOLDERS);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("sites", MFD_CLOEXEC);
    struct spw_callsite_shm *share;

    if (fd < 0 || ftruncate(fd, sizeof(struct spw_callsite_shm)) != 0) {
        return 0;
    }
    put_valid(fd);
    share = spw_cli_call_sites_read(fd);
    FUZZ_REQUIRE(share != NULL && spw_callsite_table_count(spw_callsite_known()) == SITES);
    spw_cli_call_sites_close(share);
    change(fd, data, size);
    share = spw_cli_call_sites_read(fd);
    if (share != NULL) {
        show(share);
    }
    spw_cli_call_sites_close(share);
    (void)close(fd);
    return 0;
}
