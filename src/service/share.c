#include "service/share.h"

#include "common/options.h"
#include "device/device.h"
#include "device/lease.h"
#include "device/spill.h"
#include "pool/pool.h"
#include "service/nvml.h"
#include "service/state.h"
#include "service/thread.h"
#include "system/clock.h"
#include "system/create.h"
#include "system/file_limit.h"
#include "system/futex.h"
#include "system/log.h"
#include "system/pid.h"
#include "system/sleep.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

enum { NAME_MOST = 64, PATH_MOST = 192, VERSION = 1, MAGIC = 0x53505348 };
enum { PID_BITS = 22, NS_PER_MS = 1000000 };

/* Longest time to serve a request, and to wait for an answer; time until a process is asked
 * again. */
enum {
    GIVE_MS = 1500,
    ANSWER_MS = 2000,
    LEAVE_ALONE_MS = 30000, /* after no answer */
    REFUSED_MS = 2000,      /* after it had nothing to give */
    LOOK_MS = 50,
    PAUSE_MS = 5
};

/* An answer of NVML is used for this time. */
enum { BESIDES_VALID_MS = 1000 };

/* A process of the share, in the file. */
struct spw_share_member {
    _Atomic uint64_t owner; /* start of the process << PID_BITS | its pid; 0: none */
    _Atomic uint64_t weight;
    _Atomic uint64_t wanted;   /* bytes that others have asked for */
    _Atomic uint64_t given;    /* bytes given so far */
    _Atomic uint32_t asked;    /* number of requests; a futex word */
    _Atomic uint32_t answered; /* the request answered last; a futex word */
    uint64_t spare[3];
};

struct spw_share_file {
    uint32_t magic, version;
    uint64_t spare[7];
    struct spw_share_member members[SPW_SHARE_MEMBERS];
};

/* ---- the file ---- */

static bool is_name(const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    return strlen(name) < NAME_MOST && name[strspn(name, allowed)] == '\0';
}

/* Writes the file's path: of this user, name and device. False without a UUID. */
static bool path_of(const struct spw_device *device, const char *name, char ret_path[PATH_MOST])
{
    char text[2 * sizeof(CUuuid) + 1];
    CUuuid uuid;

    if (SPW_DRIVER_CALL(spw_process_driver(), device->ordinal, cuDeviceGetUuid_v2, &uuid,
                        device->handle) != CUDA_SUCCESS) {
        return false;
    }
    for (size_t i = 0; i < sizeof(uuid); i++) {
        snprintf(text + 2 * i, 3, "%02x", (unsigned char)uuid.bytes[i]);
    }
    snprintf(ret_path, PATH_MOST, "/dev/shm/spillway-share-%u-%s-%s", (unsigned)geteuid(), name,
             text);
    return true;
}

/* Maps the file, which is made at first use. NULL when it is not ours, or of another version. */
static struct spw_share_file *map(const char *path)
{
    int fd = spw_create_open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
    struct spw_share_file *file = MAP_FAILED;
    struct stat status;

    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == geteuid() && status.st_size <= (off_t)sizeof(*file) &&
        spw_file_may_have(sizeof(*file)) && posix_fallocate(fd, 0, sizeof(*file)) == 0) {
        file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (file == MAP_FAILED) {
        return NULL;
    }
    if (file->magic == 0) {
        file->version = VERSION;
        file->magic = MAGIC;
    }
    if (file->magic != MAGIC || file->version != VERSION) {
        (void)munmap(file, sizeof(*file));
        return NULL;
    }
    return file;
}

static bool lives(uint64_t owner)
{
    uint64_t start;
    char state;

    return owner != 0 && spw_pid_start((int)(owner & ((1 << PID_BITS) - 1)), &start, &state) &&
           start == owner >> PID_BITS && state != 'Z' && state != 'X';
}

/* Takes an entry that no living process has. */
static struct spw_share_member *enter(struct spw_share_file *file)
{
    uint64_t start, owner, mine;
    char state;

    if (!spw_pid_start(0, &start, &state)) {
        return NULL;
    }
    mine = start << PID_BITS | (uint64_t)getpid();
    for (int i = 0; i < SPW_SHARE_MEMBERS; i++) {
        struct spw_share_member *member = &file->members[i];

        owner = atomic_load(&member->owner);
        /* It is ours already after exec, which keeps pid and start. */
        if ((owner == mine || !lives(owner)) &&
            atomic_compare_exchange_strong(&member->owner, &owner, mine)) {
            atomic_store(&member->weight, spw_option_get(SPW_OPT_SPILLWAY_WEIGHT, NULL, 0).bytes);
            atomic_store(&member->wanted, 0);
            return member;
        }
    }
    return NULL;
}

/* ---- shares ---- */

/* The bytes of the device that this process is entitled to. */
static uint64_t entitled(const struct spw_service_share *share)
{
    uint64_t mine = atomic_load(&share->mine->weight), sum = 0;

    for (int i = 0; i < SPW_SHARE_MEMBERS; i++) {
        const struct spw_share_member *member = &share->file->members[i];

        sum += lives(atomic_load(&member->owner)) ? atomic_load(&member->weight) : 0;
    }
    sum = sum > mine ? sum : mine;
    return (uint64_t)((double)spw_counter_get(&share->device->counters->limit_bytes) *
                      (double)mine / (double)sum);
}

/* The device memory that the pool holds or that the driver has given to the program. */
static uint64_t counted(const struct spw_service_share *share)
{
    const struct spw_counters *counters = share->device->counters;

    return spw_counter_get(&counters->committed_bytes) + spw_counter_get(&counters->passed_bytes) -
           spw_counter_get(&counters->charged_bytes);
}

/* Asks NVML for the other memory of the process: its contexts, code and libraries. */
static void ask_besides(struct spw_service_share *share)
{
    uint64_t now = spw_clock_ns(), last = atomic_load(&share->besides_ns), known;
    struct spw_nvml_usage usage;

    if ((last != 0 && now - last < (uint64_t)BESIDES_VALID_MS * NS_PER_MS) ||
        !atomic_compare_exchange_strong(&share->besides_ns, &last, now)) {
        return;
    }
    if (spw_service_nvml_ask_own(share->device, &usage)) {
        known = counted(share);
        atomic_store(&share->besides, usage.own > known ? usage.own - known : 0);
    }
}

static uint64_t held(const struct spw_service_share *share)
{
    return counted(share) + atomic_load(&share->besides);
}

/* ---- giving ---- */

static void sleep_ms(uint64_t milliseconds)
{
    spw_sleep_ns(milliseconds * NS_PER_MS);
}

/* Gives free memory to the driver, and moves blocks to the host while this process has more than
 * its share. Returns the bytes that the device gained. */
static uint64_t give(struct spw_service_share *share, uint64_t wanted)
{
    uint64_t end = spw_clock_ns() + (uint64_t)GIVE_MS * NS_PER_MS, most = entitled(share);
    uint64_t before, given = 0;
    struct spw_pool *pool;

    if (spw_process_is_leaving()) {
        return 0; /* no call of CUDA while the process ends */
    }
    ask_besides(share);
    before = held(share);
    spw_device_lease_enter();
    pool = spw_device_opened(share->device);
    if (pool != NULL) {
        (void)spw_pool_trim(pool, 0);
    }
    while (pool != NULL && atomic_load(&share->device->tier) != NULL && given < wanted &&
           held(share) > most && spw_clock_ns() < end) {
        if (!spw_device_yield(share->device, pool)) {
            sleep_ms(PAUSE_MS);
        }
        given = before > held(share) ? before - held(share) : 0;
    }
    spw_device_lease_leave();
    given = before > held(share) ? before - held(share) : 0;
    spw_counter_add(&share->device->counters->yielded_bytes, given);
    return given;
}

static void *serve(void *argument)
{
    struct spw_service_share *share = argument;
    uint32_t seen = atomic_load(&share->mine->answered), now;

    (void)prctl(PR_SET_NAME, "spillway-share");
    for (;;) {
        now = atomic_load(&share->mine->asked);
        if (now == seen) {
            spw_futex_wait(&share->mine->asked, seen, NULL);
            continue;
        }
        atomic_fetch_add(&share->mine->given,
                         give(share, atomic_exchange(&share->mine->wanted, 0)));
        seen = now;
        atomic_store(&share->mine->answered, seen);
        spw_futex_wake(&share->mine->answered);
    }
    return NULL;
}

/* ---- asking ---- */

static void leave_alone(struct spw_service_share *share, int i, unsigned ms)
{
    atomic_store(&share->alone_owner[i], atomic_load(&share->file->members[i].owner));
    atomic_store(&share->alone_until[i], spw_clock_ns() + (uint64_t)ms * NS_PER_MS);
}

static bool is_left_alone(const struct spw_service_share *share, int i, uint64_t owner)
{
    return owner == atomic_load(&share->alone_owner[i]) &&
           spw_clock_ns() <= atomic_load(&share->alone_until[i]);
}

/* Asks one process. True when it has given something. */
static bool ask(struct spw_service_share *share, int i, uint64_t bytes)
{
    const struct timespec look = {.tv_nsec = (long)LOOK_MS * NS_PER_MS};
    struct spw_share_member *member = &share->file->members[i];
    uint64_t end = spw_clock_ns() + (uint64_t)ANSWER_MS * NS_PER_MS;
    uint64_t before = atomic_load(&member->given);
    uint32_t number, answered;

    atomic_fetch_add(&member->wanted, bytes);
    number = atomic_fetch_add(&member->asked, 1) + 1;
    spw_futex_wake(&member->asked);
    answered = atomic_load(&member->answered);
    while ((int32_t)(answered - number) < 0) {
        if (spw_clock_ns() > end) {
            leave_alone(share, i, LEAVE_ALONE_MS);
            return atomic_load(&member->given) != before;
        }
        spw_futex_wait(&member->answered, answered, &look);
        answered = atomic_load(&member->answered);
    }
    if (atomic_load(&member->given) == before) {
        leave_alone(share, i, REFUSED_MS); /* it has nothing that can move now */
        return false;
    }
    return true;
}

bool spw_service_share_ask(struct spw_device *device, uint64_t bytes)
{
    struct spw_service_share *share = &spw_service.shares[device->ordinal];
    uint64_t most, mine;
    bool freed = false;

    if (!atomic_load(&share->joined) || share->mine == NULL) {
        return false;
    }
    ask_besides(share);
    most = entitled(share);
    mine = held(share);
    if (mine >= most) {
        return false;
    }
    bytes = bytes < most - mine ? bytes : most - mine;
    for (int i = 0; i < SPW_SHARE_MEMBERS && !freed; i++) {
        const struct spw_share_member *member = &share->file->members[i];
        uint64_t owner = atomic_load(&member->owner);

        freed = member != share->mine && lives(owner) && !is_left_alone(share, i, owner) &&
                ask(share, i, bytes);
    }
    return freed;
}

/* ---- joining ---- */

static void join(struct spw_service_share *share, const char *name)
{
    char path[PATH_MOST];

    share->file = path_of(share->device, name, path) ? map(path) : NULL;
    share->mine = share->file != NULL ? enter(share->file) : NULL;
    if (share->mine == NULL) {
        spw_log_always("SPILLWAY_SHARE=%s: device %d is not shared: %s", name,
                       share->device->ordinal,
                       share->file != NULL ? "too many processes share it"
                                           : "no file in /dev/shm that is only this user's");
        return;
    }
    (void)spw_service_thread_start(serve, share);
}

void spw_service_share_join(void)
{
    struct spw_option_value name = spw_option_get(SPW_OPT_SPILLWAY_SHARE, NULL, 0);

    if (!name.set) {
        return;
    }
    if (!is_name(name.text)) {
        if (!atomic_flag_test_and_set(&spw_service.bad_share)) {
            spw_log_always("SPILLWAY_SHARE=%s: expected letters, digits, '.', '_' and '-', at most "
                           "%d; nothing is shared",
                           name.text, NAME_MOST - 1);
        }
        return;
    }
    for (int i = 0; i < spw_device_count(); i++) {
        struct spw_service_share *share = &spw_service.shares[i];

        if (spw_device_opened(spw_device_at(i)) != NULL && !atomic_exchange(&share->joined, true)) {
            share->device = spw_device_at(i);
            join(share, name.text);
        }
    }
}

void spw_service_share_forget(void)
{
    for (int i = 0; i < SPW_DEVICES_MAX; i++) {
        atomic_store(&spw_service.shares[i].joined, false);
        spw_service.shares[i].mine = NULL;
    }
}
