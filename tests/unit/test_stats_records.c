/* Records of the statistics that several threads write and read: no reader sees parts of two. */
#include "stats/exit.h"
#include "stats/file.h"
#include "stats/stats.h"

#include "child.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdlib.h>

static char path[] = "/tmp/spillway-records-XXXXXX";

static struct spw_stats *start(void)
{
    struct spw_stats *stats = spw_stats_create();

    spw_stats_start(stats, "auto", "no allocator is configured", path, SPW_SUMMARY_ON, 1);
    return stats;
}

/* Writes the file and reads it. Returns the root; *ret_refusal is the device's member. */
static cJSON *write_and_read(struct spw_stats *stats, const cJSON **ret_refusal)
{
    cJSON *root;

    CHECK(spw_stats_write(stats));
    root = cJSON_Parse(content(path));
    *ret_refusal = cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(root, "devices"), 0),
                                       "last_oom");
    return root;
}

static uint64_t number(const cJSON *object, const char *key)
{
    return (uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(object, key));
}

static _Atomic bool written;

static void *refuse_always(void *cookie)
{
    for (uint64_t i = 1; !atomic_load(&written); i++) {
        spw_stats_refuse(cookie, "cuMemAlloc_v2", i, 2 * i, 3 * i);
    }
    return NULL;
}

static void refuse_threads(void)
{
    struct spw_stats *stats = start();
    pthread_t threads[2];

    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, refuse_always, &stats->devices[0].refusal) == 0);
    }
    for (int i = 0; i < 300; i++) {
        const cJSON *refusal;
        cJSON *root = write_and_read(stats, &refusal);

        if (cJSON_IsObject(refusal)) {
            CHECK(number(refusal, "bytes") == 2 * number(refusal, "allocation"));
            CHECK(number(refusal, "missing_bytes") == 3 * number(refusal, "allocation"));
        }
        cJSON_Delete(root);
    }
    atomic_store(&written, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void test_refused_threads(void **state)
{
    in_child(refuse_threads);
}

/* A thread was stopped amid a record: the others go on without it. */
static void keep_a_record(void)
{
    struct spw_stats *stats = start();
    struct spw_stats_refusal *refusal = &stats->devices[0].refusal;
    const cJSON *read;
    cJSON *root;

    spw_stats_refuse(refusal, "cuMemAlloc_v2", 1, 2, 3);
    CHECK(spw_stats_claim(&refusal->busy));
    root = write_and_read(stats, &read);
    CHECK(cJSON_IsNull(read));
    cJSON_Delete(root);
    spw_stats_unclaim(&refusal->busy);
    root = write_and_read(stats, &read);
    CHECK(number(read, "bytes") == 2);
    cJSON_Delete(root);
}

static void test_kept_record(void **state)
{
    in_child(keep_a_record);
}

/* A request that is refused twice is one; granted later, it was overcome. */
static void overcome(void)
{
    struct spw_stats_refusal *refusal = &start()->devices[0].refusal;

    spw_stats_grant(refusal, 1 << 20);
    spw_stats_refuse(refusal, "cudaMalloc", 1, 100, 3);
    spw_stats_refuse(refusal, "cudaMalloc", 2, 100, 3);
    spw_stats_grant(refusal, 99);
    CHECK(refusal->requests == 1 && refusal->overcome == 0);
    spw_stats_grant(refusal, 100);
    spw_stats_grant(refusal, 100);
    CHECK(refusal->requests == 1 && refusal->overcome == 1 && refusal->lost.time_ns == 0);
    spw_stats_refuse(refusal, "cudaMalloc", 3, 100, 3);
    spw_stats_refuse(refusal, "cudaMalloc", 4, 50, 3);
    spw_stats_grant(refusal, 50);
    CHECK(refusal->requests == 3 && refusal->overcome == 2);
    CHECK(refusal->last.number == 4 && refusal->lost.number == 3);
    CHECK(atomic_load(&refusal->count) == 4 && atomic_load(&refusal->pending_bytes) == 0);
}

static void test_overcome(void **state)
{
    in_child(overcome);
}

static int set_up(void **state)
{
    int fd = mkstemp(path);

    return fd >= 0 ? close(fd) : -1;
}

static int tear_down(void **state)
{
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_threads),
        cmocka_unit_test(test_kept_record),
        cmocka_unit_test(test_overcome),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
