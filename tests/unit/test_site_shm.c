/* Sites in shared memory: what is published is read again, and nothing that is read is trusted. */
#include "callsite/shm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { DEVICES = 2, SITES = 1200 };

static struct spw_callsite_shm *share;
static struct spw_callsite_table sites;
static struct spw_strings strings;
static size_t leaves; /* how often memory can be had still */
static bool refused;  /* it could not be had once */

static void *room(size_t bytes)
{
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_ptr_not_equal(address, MAP_FAILED);
    return address;
}

static bool back(const void *from, size_t bytes)
{
    assert_true((const char *)from >= (const char *)share);
    assert_true((const char *)from + bytes <= (const char *)(share + 1));
    refused |= leaves == 0;
    return leaves > 0 && leaves-- > 0;
}

static int begin(void **state)
{
    leaves = 1000;
    refused = false;
    share = room(sizeof(*share));
    assert_true(spw_callsite_table_init(&sites, SPW_CALLSITE_MOST, SPW_CALLSITE_SHM_SITES));
    assert_true(spw_callsite_strings_init(&strings, SPW_CALLSITE_SHM_TEXTS, 1 << 16));
    return 0;
}

static int end(void **state)
{
    munmap(share, sizeof(*share));
    spw_callsite_table_fini(&sites);
    spw_callsite_strings_fini(&strings);
    return 0;
}

/* Enters a site as a thread that allocates does. */
static uint32_t enter(unsigned number)
{
    struct spw_stack stack = {.api = number % 2 == 0 ? "cuMemAlloc" : "cuMemAllocAsync",
                              .native_count = 2,
                              .python_count = 1,
                              .native = {1000 + number, 2000}};
    char name[32];
    uint32_t site;

    snprintf(name, sizeof(name), "file%u.py", number % 100);
    stack.thread = spw_callsite_strings_intern(&strings, "main", 4);
    stack.tag = spw_callsite_strings_intern(&strings, "weights", 7);
    stack.modules = spw_callsite_strings_intern(&strings, "Net/Block", 9);
    stack.python[0].file = spw_callsite_strings_intern(&strings, name, strlen(name));
    stack.python[0].function = spw_callsite_strings_intern(&strings, "forward", 7);
    stack.python[0].line = number;
    spw_callsite_shm_expect(share, spw_callsite_table_count(&sites));
    site = spw_callsite_table_intern(&sites, &stack);
    spw_callsite_shm_publish(share, &sites, &strings);
    return site;
}

static uint64_t move(uint64_t address, void *context)
{
    return address + *(const uint64_t *)context;
}

/* Reads a copy, as another process has it; the number of sites, or -1. */
static int read_copy(struct spw_callsite_table *ret_sites, struct spw_strings *ret_strings)
{
    static struct spw_callsite_shm *copy;
    uint64_t distance = 7;

    if (copy != NULL) {
        munmap(copy, sizeof(*copy));
    }
    copy = room(sizeof(*copy));
    memcpy(copy, share, offsetof(struct spw_callsite_shm, modules));
    memcpy(copy->texts, share->texts, 1 << 20);
    memcpy(copy->sites, share->sites, 1 << 20);
    copy->texts[SPW_CALLSITE_SHM_TEXTS - 1] = 'x'; /* must not be read */
    if (!spw_callsite_shm_read(copy, move, &distance, ret_sites, ret_strings)) {
        return -1;
    }
    for (int i = 0; i < DEVICES; i++) {
        assert_ptr_equal(copy->charges[i].sites, copy->held[i]);
        assert_ptr_equal(copy->pinned[i].sites, copy->held_pinned[i]);
    }
    return (int)spw_callsite_table_count(ret_sites);
}

static void test_what_is_published_is_read(void **state)
{
    struct spw_callsite_table other;
    struct spw_strings texts;
    char name[32];

    assert_true(spw_callsite_shm_init(share, DEVICES, back));
    for (unsigned i = 1; i <= SITES; i++) {
        assert_int_equal(enter(i), i);
        assert_true(share->charges[DEVICES - 1].most >= i);
    }
    assert_int_equal(read_copy(&other, &texts), SITES);
    for (unsigned i = 1; i <= SITES; i++) {
        const struct spw_callsite *site = spw_callsite_table_get(&other, i);
        const struct spw_callsite_line *line = spw_callsite_lines(site);

        snprintf(name, sizeof(name), "file%u.py", i % 100);
        assert_string_equal(site->api, i % 2 == 0 ? "cuMemAlloc" : "cuMemAllocAsync");
        assert_string_equal(spw_callsite_strings_text(&texts, site->thread), "main");
        assert_string_equal(spw_callsite_strings_text(&texts, site->tag), "weights");
        assert_string_equal(spw_callsite_strings_text(&texts, site->modules), "Net/Block");
        assert_string_equal(spw_callsite_strings_text(&texts, line->file), name);
        assert_string_equal(spw_callsite_strings_text(&texts, line->function), "forward");
        assert_int_equal(line->line, i);
        assert_int_equal(site->native[0], 1007 + i);
    }
    assert_null(spw_callsite_table_get(&other, SITES + 1));
}

/* After fork: the same sites again, in memory that is zero. */
static void test_again(void **state)
{
    struct spw_callsite_table other;
    struct spw_strings texts;

    assert_true(spw_callsite_shm_init(share, DEVICES, back));
    (void)enter(1);
    (void)enter(2);
    munmap(share, sizeof(*share));
    share = room(sizeof(*share));
    assert_true(spw_callsite_shm_init(share, DEVICES, NULL));
    assert_int_equal(share->charges[0].most, SPW_CALLSITE_MOST);
    spw_callsite_shm_publish(share, &sites, &strings);
    assert_int_equal(read_copy(&other, &texts), 2);
}

/* Whenever memory ends: what was published stays readable, and later sites are charged to number
 * 0 for good. */
static void test_a_full_file_system(void **state)
{
    struct spw_callsite_table other;
    struct spw_strings texts;

    for (size_t room_for = 0; room_for < 40; room_for++) {
        unsigned number = 1;
        uint32_t most;
        int known;

        (void)end(NULL);
        (void)begin(NULL);
        leaves = room_for;
        if (!spw_callsite_shm_init(share, DEVICES, back)) {
            continue;
        }
        while (number <= SITES && !refused) {
            (void)enter(number++);
        }
        most = share->charges[0].most;
        known = read_copy(&other, &texts);
        assert_true(known >= 0 && known < (int)number);
        assert_int_equal(share->charges[1].most, most);
        leaves = 1000;
        for (unsigned i = 0; refused && i < SITES; i++) {
            (void)enter(number++);
        }
        if (refused) {
            assert_int_equal(share->charges[0].most, most);
            assert_int_equal(read_copy(&other, &texts), known);
        }
    }
}

#define REFUSES(change)                                                                            \
    do {                                                                                           \
        struct spw_callsite_shm *kept = room(sizeof(*kept));                                       \
                                                                                                   \
        memcpy(kept, share, offsetof(struct spw_callsite_shm, modules));                           \
        change;                                                                                    \
        assert_true(read_copy(&other, &texts) < 2);                                                \
        memcpy(share, kept, offsetof(struct spw_callsite_shm, modules));                           \
        munmap(kept, sizeof(*kept));                                                               \
        assert_int_equal(read_copy(&other, &texts), 2);                                            \
    } while (0)

static struct spw_callsite *second(void)
{
    return (struct spw_callsite *)(share->sites + (size_t)share->offsets[2] * 8);
}

#define REFUSES_SITE(change)                                                                       \
    do {                                                                                           \
        struct spw_callsite kept = *second();                                                      \
                                                                                                   \
        change;                                                                                    \
        assert_int_equal(read_copy(&other, &texts), 1);                                            \
        memcpy(second(), &kept, sizeof(kept));                                                     \
    } while (0)

static void test_nothing_is_trusted(void **state)
{
    struct spw_callsite_table other;
    struct spw_strings texts;

    assert_true(spw_callsite_shm_init(share, DEVICES, back));
    (void)enter(1);
    (void)enter(2);
    REFUSES(share->magic++);
    REFUSES(share->version++);
    REFUSES(share->bytes--);
    REFUSES(share->devices = SPW_DEVICES_MAX + 1);
    REFUSES(share->texts_used = SPW_CALLSITE_SHM_TEXTS);
    REFUSES(share->offsets[2] = UINT32_MAX);
    REFUSES(share->offsets[2] = SPW_CALLSITE_SHM_SITES / 8 - 1);
    REFUSES(share->offsets[2] = share->offsets[1]);
    REFUSES(share->offsets[2] = share->offsets[1] + 1); /* begins within the first */
    REFUSES(share->apis[2] = share->texts_used);
    REFUSES_SITE(second()->native_count = SPW_CALLSITE_NATIVE + 1);
    REFUSES_SITE(second()->python_count = SPW_CALLSITE_PYTHON + 1);
    REFUSES_SITE(second()->thread = UINT32_MAX);
    REFUSES_SITE(second()->modules = UINT32_MAX);
    REFUSES_SITE(second()->tag = UINT32_MAX);
    REFUSES_SITE(second()->native_count = 0); /* the frames of Python are read elsewhere then */
    atomic_store(&share->count, UINT32_MAX);
    assert_true(read_copy(&other, &texts) <= SPW_CALLSITE_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_published_is_read, begin, end),
        cmocka_unit_test_setup_teardown(test_again, begin, end),
        cmocka_unit_test_setup_teardown(test_a_full_file_system, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_is_trusted, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
