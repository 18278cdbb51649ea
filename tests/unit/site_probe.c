#include "site_probe.h"

#include "callsite/capture.h"
#include "callsite/python.h"
#include "callsite/tag.h"
#include "system/loader.h"
#include "system/lock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* As the preloaded object does it. */
static void before(void)
{
    spw_lock_all();
    spw_loader_before_fork();
}

static void in_parent(void)
{
    spw_loader_after_fork(/* child */ false);
    spw_lock_release_all(/* child */ false);
}

static void in_child(void)
{
    spw_loader_after_fork(/* child */ true);
    spw_lock_release_all(/* child */ true);
    spw_callsite_python_reset();
}

void probe_start(int mode)
{
    struct spw_callsite_shm *share = mmap(NULL, sizeof(*share), PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    pthread_atfork(before, in_parent, in_child);
    spw_callsite_start((enum spw_sites)mode);
    if (share != MAP_FAILED && spw_callsite_shm_init(share, 1, NULL)) {
        spw_callsite_publish(share); /* part of what a new stack costs */
    }
}

uint32_t probe_capture(void)
{
    return spw_callsite_capture("probe");
}

uint32_t probe_capture_as(const char *api)
{
    return spw_callsite_capture(api);
}

bool probe_tag(const char *name)
{
    return spw_callsite_tag_set(name);
}

static double now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

double probe_repeat(int count, uint32_t *ret_site)
{
    double begin = now_ns();

    for (int i = 0; i < count; i++) {
        *ret_site = spw_callsite_capture("probe");
    }
    return (now_ns() - begin) / count;
}

unsigned probe_walks(void)
{
    return spw_callsite_walks();
}

int probe_native(uint32_t site, uint64_t *ret_addresses)
{
    const struct spw_callsite *known = spw_callsite_table_get(spw_callsite_known(), site);

    if (known == NULL) {
        return -1;
    }
    memcpy(ret_addresses, known->native, known->native_count * sizeof(known->native[0]));
    return known->native_count;
}

int probe_python(uint32_t site, char *ret_text, size_t capacity)
{
    const struct spw_callsite *known = spw_callsite_table_get(spw_callsite_known(), site);
    size_t used = 0;

    if (known == NULL) {
        return -1;
    }
    *ret_text = '\0';
    for (int i = 0; i < known->python_count; i++) {
        const struct spw_callsite_line *line = &spw_callsite_lines(known)[i];

        used += (size_t)snprintf(
            ret_text + used, used < capacity ? capacity - used : 0, "%s:%s:%u\n",
            spw_callsite_strings_text(spw_callsite_texts(), line->file),
            spw_callsite_strings_text(spw_callsite_texts(), line->function), line->line);
    }
    return known->python_count;
}

uint64_t probe_refused(void)
{
    return atomic_load(&spw_callsite_known()->refused);
}

const char *probe_modules(uint32_t site)
{
    const struct spw_callsite *known = spw_callsite_table_get(spw_callsite_known(), site);

    return known == NULL ? "" : spw_callsite_strings_text(spw_callsite_texts(), known->modules);
}

const char *probe_thread(uint32_t site)
{
    const struct spw_callsite *known = spw_callsite_table_get(spw_callsite_known(), site);

    return known == NULL ? "" : spw_callsite_strings_text(spw_callsite_texts(), known->thread);
}
