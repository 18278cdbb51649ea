/* Two processes that share blocks by CUDA IPC.
 *
 *     ipc WAY [NUMBER [WORD]]
 *
 * Each WAY is one test of the tables here, in ipc_hard.c and in ipc_odd.c. Both processes print
 * what they see, in lines that begin with "owner" or "other". There is a program that makes and
 * opens handles by the driver, and one that does so by the runtime. */
#include <string.h>
#include <unistd.h>

#include "ipc.h"
#include "processes.h"

/* ---- exchange: content both ways, blocks of several sizes, offsets ---- */

static void own_exchange(void)
{
    static const size_t sizes[] = {1,       512,           5000,    MIB,      2 * MIB,
                                   3 * MIB, 2 * MIB + 512, 7 * MIB, 20 * MIB, 65 * MIB + 4096};
    enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
    CUdeviceptr blocks[COUNT], neighbours[COUNT];

    for (int i = 0; i < COUNT; i++) {
        blocks[i] = allocate(sizes[i]);
        neighbours[i] = allocate(1000);
        fill(neighbours[i], 1000, 0x33);
    }
    for (int i = 0; i < COUNT; i++) {
        offer(blocks[i], sizes[i], 0, 0x10 + i);
        offer(blocks[i], sizes[i], sizes[i] / 2, 0x20 + i);
    }
    for (int i = 0; i < COUNT; i++) {
        HOLD(has(neighbours[i], 1000, 0x33));
        MUST(cuMemFree(blocks[i]));
        HOLD(has(neighbours[i], 1000, 0x33));
    }
    printf("owner: %d blocks\n", COUNT);
}

static void see_exchange(void)
{
    enter(0);
    printf("other: %ld opened\n", take_offers());
}

/* ---- rules: what cuda.h promises ---- */

static void own_rules(void)
{
    CUdeviceptr address = allocate(4 * MIB), small = allocate(100), again;
    CUipcMemHandle first, second, third;
    int capable = 7;

    MUST(get(&first, address));
    MUST(get(&second, address + 12345));
    HOLD(memcmp(&first, &second, sizeof(first)) == 0);
    MUST(get(&third, small));
    HOLD(memcmp(&first, &third, sizeof(first)) != 0);
    printf("owner: own handle %d\n", open_handle(&again, &first));
    MUST(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address));
    printf("owner: capable %d\n", capable);
    fill(address, 4 * MIB, 1);
    send_to_other(&first, sizeof(first));
    send_to_other(&third, sizeof(third));
    HOLD(hear() == '1');
    MUST(cuMemFree(small));
    /* A new block at the same address has a handle of its own. */
    MUST(cuMemFree(address));
    MUST(cuCtxSynchronize());
    again = allocate(4 * MIB);
    MUST(get(&second, again));
    HOLD(memcmp(&first, &second, sizeof(first)) != 0);
    say('2');
    HOLD(hear() == '3');
}

static void see_rules(void)
{
    CUipcMemHandle handle, small, wrong;
    CUdeviceptr first, second, base;
    size_t bytes;

    enter(0);
    HOLD(receive(&handle, sizeof(handle)) && receive(&small, sizeof(small)));
    MUST(open_handle(&first, &handle));
    MUST(open_handle(&second, &handle));
    printf("other: twice the same %d\n", first == second);
    MUST(cuMemGetAddressRange(&base, &bytes, first + 3 * MIB));
    printf("other: range %d of %zu MiB\n", base == first, bytes / MIB);
    MUST(close_address(first));
    HOLD(has(first, 4 * MIB, 1));
    printf("other: close inside %d\n", close_address(first + 512));
    MUST(close_address(first));
    printf("other: closed too often %d\n", close_address(first));
    /* All of the handle counts but its last 8 bytes, which are zero. */
    for (size_t i = 0; i < sizeof(handle) - 8; i++) {
        wrong = handle;
        ((unsigned char *)&wrong)[i] ^= 1;
        if (open_handle(&second, &wrong) == 0) {
            printf("other: byte %zu may be wrong\n", i);
        }
    }
    say('1');
    HOLD(hear() == '2');
    printf("other: freed %d, with a new block there %d\n", open_handle(&second, &small),
           open_handle(&second, &handle));
    say('3');
}

/* ---- many: NUMBER exchanges, and nothing is left ---- */

enum { WARM = 10 };

/* The thread that answers the other process may still have its connection open for a moment. */
static int count_fds_at_rest(void)
{
    int least = count_fds();

    for (int i = 0; i < 20; i++) {
        int now;

        (void)usleep(1000);
        now = count_fds();
        least = now < least ? now : least;
    }
    return least;
}

/* What a process has open; the first reading is the reference of the second. */
static void look(const char *who, bool again)
{
    static size_t before;
    static int fds, maps;

    if (!again) {
        before = free_bytes();
        fds = count_fds_at_rest();
        maps = count_lines("/proc/self/maps", NULL);
        return;
    }
    printf("%s: free memory %s\n", who, free_bytes() >= before ? "as before" : "less");
    printf("%s: descriptors %+d\n", who, count_fds_at_rest() - fds);
    printf("%s: mappings %s\n", who,
           count_lines("/proc/self/maps", NULL) <= maps + 4 ? "as before" : "more");
}

static void own_many(void)
{
    static const size_t sizes[] = {3 * MIB, 700, 9 * MIB + 512, 2 * MIB};

    for (long i = 0; i < number; i++) {
        size_t bytes = sizes[i % 4];
        CUdeviceptr address;

        if (i == WARM) {
            look("owner", false);
        }
        address = allocate(bytes);
        offer(address, bytes, 0, (int)i & 0x7f);
        MUST(cuMemFree(address));
    }
    look("owner", true);
}

static void see_many(void)
{
    CUdeviceptr address;
    struct offer taken;

    enter(0);
    for (long i = 0; i < number && receive(&taken, sizeof(taken)); i++) {
        if (i == WARM) {
            look("other", false);
        }
        MUST(open_handle(&address, &taken.handle));
        HOLD(has(address, taken.bytes, taken.byte));
        fill(address, taken.bytes, taken.byte ^ 0xff);
        MUST(close_address(address));
        say('w');
    }
    HOLD(hear() == 0);
    look("other", true);
}

/* ---- the program ---- */

static const struct way ways[] = {
    {"exchange", own_exchange, see_exchange},
    {"rules", own_rules, see_rules},
    {"many", own_many, see_many},
    {NULL, NULL, NULL},
};

static const struct way *find(const struct way *table, const char *name)
{
    while (table->name != NULL && strcmp(table->name, name) != 0) {
        table++;
    }
    return table->name != NULL ? table : NULL;
}

int main(int argc, char **argv)
{
    const struct way *way = find(ways, argc > 1 ? argv[1] : "");

    way = way != NULL ? way : find(hard_ways, argc > 1 ? argv[1] : "");
    way = way != NULL ? way : find(odd_ways, argc > 1 ? argv[1] : "");
    HOLD(way != NULL);
    number = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    word = argc > 3 ? argv[3] : "";
    if (argc > 4) {
        become_other(argv[4]);
        way->other();
        return 0;
    }
    start_other(argv[0], way->name);
    enter(0);
    way->owner();
    (void)fflush(stdout);
    if (other_pid > 0) {
        end_other();
    }
    return 0;
}
