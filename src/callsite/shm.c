#include "callsite/shm.h"

#include "callsite/modules.h"

#include <string.h>

enum { UNIT = 8, SITES_AT_ONCE = 512, BYTES_AT_ONCE = 256 << 10, MODULES_AT_ONCE = 64 };
enum { TEXT_MOST = 4096 }; /* most bytes of a text that is read; written texts are shorter */

static struct spw_callsite_published *const published = &spw_callsite_state.published;

static bool back(const void *from, size_t bytes)
{
    if (!published->full && published->back != NULL && !published->back(from, bytes)) {
        published->full = true;
    }
    return !published->full;
}

/* ---- writing ---- */

/* Makes the charges of the sites up to `most` writable. */
static bool back_sites(struct spw_callsite_shm *share, uint32_t most)
{
    uint32_t first = published->backed_sites;
    uint32_t count = most + 1 - first;
    bool done = back(&share->apis[first], count * sizeof(share->apis[0])) &&
                back(&share->offsets[first], count * sizeof(share->offsets[0]));

    for (uint32_t i = 0; done && i < share->devices; i++) {
        done = back(&share->held[i][first], count * sizeof(share->held[0][0])) &&
               back(&share->held_pinned[i][first], count * sizeof(share->held_pinned[0][0]));
    }
    for (uint32_t i = 0; done && i < share->devices; i++) {
        atomic_store_explicit(&share->charges[i].most, most, memory_order_relaxed);
        atomic_store_explicit(&share->pinned[i].most, most, memory_order_relaxed);
    }
    published->backed_sites = done ? most + 1 : first;
    return done;
}

bool spw_callsite_shm_init(struct spw_callsite_shm *share, uint32_t devices,
                           spw_callsite_shm_back *back_function)
{
    *published = (struct spw_callsite_published){0};
    published->back = back_function;
    if (!back(share, offsetof(struct spw_callsite_shm, apis))) {
        return false;
    }
    share->magic = SPW_CALLSITE_SHM_MAGIC;
    share->version = SPW_CALLSITE_SHM_VERSION;
    share->bytes = sizeof(*share);
    share->devices = devices < SPW_DEVICES_MAX ? devices : SPW_DEVICES_MAX;
    for (uint32_t i = 0; i < share->devices; i++) {
        share->charges[i].sites = share->held[i];
        share->pinned[i].sites = share->held_pinned[i];
    }
    return back_sites(share, back_function == NULL ? SPW_CALLSITE_MOST : SITES_AT_ONCE - 1);
}

void spw_callsite_shm_expect(struct spw_callsite_shm *share, uint32_t known)
{
    uint32_t most = known + SITES_AT_ONCE;

    if (known + 1 >= published->backed_sites && known < SPW_CALLSITE_MOST && !published->full) {
        (void)back_sites(share, most < SPW_CALLSITE_MOST ? most : SPW_CALLSITE_MOST);
    }
}

/* Copies [from, to) of `source` to the same place in `target`, which has `capacity` bytes. */
static bool copy(char *target, size_t capacity, const char *source, size_t from, size_t to,
                 size_t *backed)
{
    if (to > capacity) {
        return false;
    }
    if (to > *backed) {
        size_t end = to + BYTES_AT_ONCE < capacity ? to + BYTES_AT_ONCE : capacity;

        if (!back(target + *backed, end - *backed)) {
            return false;
        }
        *backed = end;
    }
    memcpy(target + from, source + from, to - from);
    return true;
}

static void publish_modules(struct spw_callsite_shm *share)
{
    uint32_t count = (uint32_t)spw_callsite_modules_count();

    for (uint32_t i = published->modules; i < count; i++) {
        if (i >= published->backed_modules) {
            uint32_t more =
                SPW_MODULE_MOST - i < MODULES_AT_ONCE ? SPW_MODULE_MOST - i : MODULES_AT_ONCE;

            if (!back(&share->modules[i], more * sizeof(share->modules[0]))) {
                return;
            }
            published->backed_modules = i + more;
        }
        share->modules[i] = *spw_callsite_modules_get(i);
        published->modules = i + 1;
    }
    atomic_store_explicit(&share->module_count, published->modules, memory_order_release);
}

void spw_callsite_shm_publish(struct spw_callsite_shm *share,
                              const struct spw_callsite_table *sites, struct spw_strings *strings)
{
    uint32_t count = spw_callsite_table_count(sites);
    uint32_t known = atomic_load_explicit(&share->count, memory_order_relaxed);

    publish_modules(share);
    for (uint32_t i = known + 1; i <= count && i < published->backed_sites; i++) {
        const char *api = spw_callsite_table_get(sites, i)->api;

        share->apis[i] = spw_callsite_strings_intern(strings, api, strlen(api));
        share->offsets[i] = sites->offsets[i];
        known = i;
    }
    if (copy(share->texts, sizeof(share->texts), strings->base, share->texts_used, strings->used,
             &published->backed_texts) &&
        copy(share->sites, sizeof(share->sites), sites->base, published->bytes, sites->used,
             &published->backed_bytes)) {
        share->texts_used = strings->used;
        published->bytes = sites->used;
        atomic_store_explicit(&share->count, known, memory_order_release);
    }
}

/* ---- reading ---- */

static bool is_text(const struct spw_callsite_shm *share, uint32_t number)
{
    return share->texts_used < SPW_CALLSITE_SHM_TEXTS &&
           (number == 0 || number < share->texts_used) &&
           strnlen(share->texts + number, TEXT_MOST + 1) <= TEXT_MOST;
}

/* Adapts a site to this process, and moves *end from behind the previous site to behind this one.
 * False when the site is not valid. Sites must be in the order of their numbers: if two sites
 * shared bytes, adapting the second would change the first after its check. */
static bool adopt(struct spw_callsite_shm *share, uint32_t number,
                  uint64_t (*move)(uint64_t address, void *context), void *context, size_t *end)
{
    const size_t largest = sizeof(struct spw_callsite) + SPW_CALLSITE_NATIVE * sizeof(uint64_t) +
                           SPW_CALLSITE_PYTHON * sizeof(struct spw_callsite_line);
    size_t at = (size_t)share->offsets[number] * UNIT;
    struct spw_callsite_line *lines;
    struct spw_callsite *site;

    if (at < *end || at + largest > sizeof(share->sites)) {
        return false;
    }
    site = (struct spw_callsite *)(share->sites + at);
    if (site->native_count > SPW_CALLSITE_NATIVE || site->python_count > SPW_CALLSITE_PYTHON ||
        !is_text(share, site->thread) || !is_text(share, site->tag) ||
        !is_text(share, site->modules) || !is_text(share, share->apis[number])) {
        return false;
    }
    lines = (struct spw_callsite_line *)(site->native + site->native_count);
    for (int i = 0; i < site->python_count; i++) {
        if (!is_text(share, lines[i].file) || !is_text(share, lines[i].function)) {
            return false;
        }
    }
    *end = (size_t)((const char *)(lines + site->python_count) - share->sites);
    for (int i = 0; i < site->native_count; i++) {
        site->native[i] = move(site->native[i], context);
    }
    site->api = share->texts + share->apis[number];
    return true;
}

bool spw_callsite_shm_read(struct spw_callsite_shm *share,
                           uint64_t (*move)(uint64_t address, void *context), void *context,
                           struct spw_callsite_table *ret_sites, struct spw_strings *ret_strings)
{
    uint32_t count, adopted = 0;
    size_t end = 0;

    if (share->magic != SPW_CALLSITE_SHM_MAGIC || share->version != SPW_CALLSITE_SHM_VERSION ||
        share->bytes != sizeof(*share) || share->devices > SPW_DEVICES_MAX) {
        return false;
    }
    share->texts[SPW_CALLSITE_SHM_TEXTS - 1] = '\0';
    count = atomic_load_explicit(&share->count, memory_order_acquire);
    while (adopted < count && adopted < SPW_CALLSITE_MOST &&
           adopt(share, adopted + 1, move, context, &end)) {
        adopted++;
    }
    for (uint32_t i = 0; i < share->devices; i++) {
        share->charges[i].sites = share->held[i];
        share->pinned[i].sites = share->held_pinned[i];
        atomic_store_explicit(&share->charges[i].most, adopted, memory_order_relaxed);
        atomic_store_explicit(&share->pinned[i].most, adopted, memory_order_relaxed);
    }
    *ret_sites = (struct spw_callsite_table){
        .base = share->sites, .offsets = share->offsets, .count = adopted};
    *ret_strings = (struct spw_strings){.base = share->texts, .used = share->texts_used};
    return true;
}
