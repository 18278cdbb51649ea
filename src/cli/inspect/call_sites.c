#include "cli/inspect/call_sites.h"

#include "callsite/capture.h"
#include "cli/inspect/libraries.h"
#include "system/fd.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* The addresses of a library in the other process, and their distance to the library's addresses in
 * this process. */
struct range {
    uintptr_t begin, end; /* in the other process */
    uintptr_t distance;   /* to add for the address in this process */
};

static struct {
    struct range list[SPW_MODULE_MOST];
    size_t count;
} ranges;

static void add_libraries(const struct spw_callsite_shm *share)
{
    uint32_t count = atomic_load_explicit(&share->module_count, memory_order_acquire);

    ranges.count = 0;
    for (uint32_t i = 0; i < count && i < SPW_MODULE_MOST; i++) {
        const struct spw_module *module = &share->modules[i];
        uintptr_t distance;

        if (spw_cli_libraries_add(module, &distance)) {
            ranges.list[ranges.count++] = (struct range){module->begin, module->end, distance};
        }
    }
}

/* Turns a return address of the other process into an address of this process; 0: unknown. */
static uint64_t move(uint64_t address, void *context)
{
    for (size_t i = ranges.count; i-- > 0;) {
        const struct range *range = &ranges.list[i];

        if (address - 1 >= range->begin && address - 1 < range->end) {
            return address + range->distance;
        }
    }
    return 0;
}

/* ---- the shared memory ---- */

static bool read_part(int fd, struct spw_callsite_shm *share, size_t offset, size_t bytes)
{
    return spw_fd_read_at(fd, (char *)share + offset, bytes, (off_t)offset);
}

/* Reads the header. The process writes an item before it counts the item. Therefore the counts are
 * read first, and all counted items are complete. */
static bool read_head(int fd, struct spw_callsite_shm *share)
{
    uint32_t count, modules;

    if (!read_part(fd, share, 0, offsetof(struct spw_callsite_shm, charges))) {
        return false;
    }
    count = atomic_load(&share->count);
    modules = atomic_load(&share->module_count);
    if (!read_part(fd, share, 0, offsetof(struct spw_callsite_shm, apis)) ||
        share->magic != SPW_CALLSITE_SHM_MAGIC || share->version != SPW_CALLSITE_SHM_VERSION ||
        share->bytes != sizeof(*share) || share->devices > SPW_DEVICES_MAX ||
        share->texts_used > SPW_CALLSITE_SHM_TEXTS) {
        return false;
    }
    atomic_store(&share->count, count < SPW_CALLSITE_MOST ? count : SPW_CALLSITE_MOST);
    atomic_store(&share->module_count, modules < SPW_MODULE_MOST ? modules : SPW_MODULE_MOST);
    return true;
}

/* Returns an upper bound on the end of the last counted site, in bytes. */
static size_t sites_end(const struct spw_callsite_shm *share, uint32_t count)
{
    const size_t largest = sizeof(struct spw_callsite) + SPW_CALLSITE_NATIVE * sizeof(uint64_t) +
                           SPW_CALLSITE_PYTHON * sizeof(struct spw_callsite_line);
    size_t end = count > 0 ? (size_t)share->offsets[count] * sizeof(uint64_t) + largest : 0;

    return end < sizeof(share->sites) ? end : sizeof(share->sites);
}

/* Reads the used parts; the rest stays zero. */
static bool read_share(int fd, struct spw_callsite_shm *share)
{
    uint32_t numbers;
    bool done = read_head(fd, share);

    if (!done) {
        return false;
    }
    numbers = atomic_load(&share->count) + 1;
    done = read_part(fd, share, offsetof(struct spw_callsite_shm, apis),
                     numbers * sizeof(share->apis[0])) &&
           read_part(fd, share, offsetof(struct spw_callsite_shm, offsets),
                     numbers * sizeof(share->offsets[0])) &&
           read_part(fd, share, offsetof(struct spw_callsite_shm, modules),
                     atomic_load(&share->module_count) * sizeof(share->modules[0])) &&
           read_part(fd, share, offsetof(struct spw_callsite_shm, texts), share->texts_used) &&
           read_part(fd, share, offsetof(struct spw_callsite_shm, sites),
                     sites_end(share, numbers - 1));
    for (uint32_t i = 0; done && i < share->devices; i++) {
        done = read_part(fd, share,
                         offsetof(struct spw_callsite_shm, held) + i * sizeof(share->held[0]),
                         numbers * sizeof(share->held[0][0])) &&
               read_part(fd, share,
                         offsetof(struct spw_callsite_shm, held_pinned) +
                             i * sizeof(share->held_pinned[0]),
                         numbers * sizeof(share->held_pinned[0][0]));
    }
    return done;
}

bool spw_cli_call_sites_adopt(struct spw_callsite_shm *share)
{
    (void)dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL); /* makes C++ names readable */
    add_libraries(share);
    return spw_callsite_adopt(share, move, NULL);
}

struct spw_callsite_shm *spw_cli_call_sites_read(int fd)
{
    struct spw_callsite_shm *share;
    struct stat status;

    if (fstat(fd, &status) != 0 || status.st_size != (off_t)sizeof(*share)) {
        return NULL;
    }
    share = mmap(NULL, sizeof(*share), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (share == MAP_FAILED) {
        return NULL;
    }
    if (!read_share(fd, share)) {
        spw_cli_call_sites_close(share);
        return NULL;
    }
    if (!spw_cli_call_sites_adopt(share)) {
        spw_cli_call_sites_close(share);
        return NULL;
    }
    return share;
}

void spw_cli_call_sites_close(struct spw_callsite_shm *share)
{
    if (share != NULL) {
        spw_callsite_adopt(NULL, NULL, NULL);
        (void)munmap(share, sizeof(*share));
    }
}
