/* The exchange of descriptors between two processes: who gets them, and that none stays open. */
#include "ipc/client.h"
#include "ipc/message.h"
#include "ipc/server.h"
#include "ipc/table.h"

#include "system/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "valgrind.h"

enum { MOST = 600, PAGE = 4096 };

/* An export of files whose sizes are one page more each. */
struct sample {
    int fds[MOST];
    uint64_t chunks[MOST];
    struct spw_ipc_handle handle;
};

static bool start_thread(void *(*run)(void *argument), void *argument)
{
    pthread_t thread;

    return pthread_create(&thread, NULL, run, argument) == 0 && pthread_detach(thread) == 0;
}

static int count_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count;
}

/* The same once the thread has closed the last connection, which may be a moment after the answer.
 */
static int count_fds_until(int expected)
{
    int count = count_fds();

    for (int i = 0; i < 5000 && count != expected; i++) {
        (void)usleep(1000);
        count = count_fds();
    }
    return count;
}

static void export(struct sample *sample, uint64_t address, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sample->fds[i] = memfd_create("sample", MFD_CLOEXEC);
        assert_true(sample->fds[i] >= 0);
        sample->chunks[i] = (i + 1) * PAGE;
        assert_int_equal(ftruncate(sample->fds[i], (off_t)sample->chunks[i]), 0);
    }
    assert_true(spw_ipc_server_start(start_thread, &sample->handle));
    assert_true(spw_ipc_table_add(&(struct spw_ipc_export){.address = address,
                                                           .block = 1,
                                                           .offset = 512,
                                                           .bytes = 1000,
                                                           .context = sample,
                                                           .count = count,
                                                           .fds = sample->fds,
                                                           .chunks = sample->chunks},
                                  &sample->handle));
}

/* Fetches in another process, which has the answer as its exit status; 100 if what it got is not
 * what was exported, or if a descriptor is left. */
static int fetch(const struct spw_ipc_handle *handle, size_t count)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        struct spw_ipc_block block;
        int before = count_fds();
        enum spw_ipc_reply reply = spw_ipc_fetch(handle, &block);
        bool good = reply != SPW_IPC_GOT ||
                    (block.count == count && block.offset == 512 && block.bytes == 1000);

        for (size_t i = 0; good && i < block.count; i++) {
            struct stat file;

            good = block.chunks[i] == (i + 1) * PAGE && fstat(block.fds[i], &file) == 0 &&
                   (uint64_t)file.st_size == block.chunks[i];
        }
        spw_ipc_block_fini(&block);
        _exit(good && count_fds() == before ? (int)reply : 100);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_descriptors(void **state)
{
    static const size_t counts[] = {1, 3, SPW_IPC_BATCH, SPW_IPC_BATCH + 1, MOST};
    struct sample sample;
    int before;

    assert_true(spw_ipc_server_start(start_thread, &sample.handle));
    before = count_fds();
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        export(&sample, 4096, counts[i]);
        assert_int_equal(spw_ipc.exports.count, 1);
        for (int turn = 0; turn < 3; turn++) {
            assert_int_equal(fetch(&sample.handle, counts[i]), SPW_IPC_GOT);
        }
        spw_ipc_table_remove(4096);
        assert_int_equal(fetch(&sample.handle, counts[i]), SPW_IPC_DENIED);
        assert_int_equal(count_fds_until(before), before);
    }
    assert_int_equal(spw_ipc.exports.count, 0);
}

static void test_wrong_handles(void **state)
{
    struct spw_ipc_handle wrong;
    struct sample sample;

    export(&sample, 4096, 1);
    for (size_t bit = 0; bit < sizeof(wrong.key) * 8; bit++) {
        wrong = sample.handle;
        wrong.key[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(fetch(&wrong, 1), SPW_IPC_DENIED);
    }
    wrong = sample.handle;
    wrong.export_id++;
    assert_int_equal(fetch(&wrong, 1), SPW_IPC_DENIED);
    wrong = sample.handle;
    wrong.version++;
    assert_int_equal(fetch(&wrong, 1), SPW_IPC_DENIED);
    wrong = sample.handle;
    wrong.name++;
    assert_int_equal(fetch(&wrong, 1), SPW_IPC_GONE);
    wrong = sample.handle;
    wrong.pid++;
    assert_int_equal(fetch(&wrong, 1), SPW_IPC_GONE);
    assert_int_equal(fetch(&sample.handle, 1), SPW_IPC_GOT);
    spw_ipc_table_remove(4096);
}

/* A new block at the address ends the export of the old one; so does the end of its context. */
static void test_ends(void **state)
{
    struct sample first, second;
    struct spw_ipc_handle found;

    export(&first, 4096, 2);
    assert_true(spw_ipc_table_find(4096, 1, &found));
    assert_false(spw_ipc_table_find(4096, 2, &found));
    export(&second, 4096, 3);
    assert_int_equal(fetch(&first.handle, 2), SPW_IPC_DENIED);
    assert_int_equal(fetch(&second.handle, 3), SPW_IPC_GOT);
    spw_ipc_table_end_context(&first);
    assert_int_equal(fetch(&second.handle, 3), SPW_IPC_GOT);
    spw_ipc_table_end_context(&second);
    assert_int_equal(fetch(&second.handle, 3), SPW_IPC_DENIED);
    assert_int_equal(spw_ipc.exports.count, 0);
}

/* A program that closes every descriptor takes nothing with it, and what it opens is left alone. */
static void test_closed_by_the_program(void **state)
{
    struct sample sample;
    int mine;

    export(&sample, 4096, 1);
    mine = memfd_create("mine", 0);
    assert_int_equal(dup2(mine, sample.fds[0]), sample.fds[0]);
    assert_int_equal(fetch(&sample.handle, 1), SPW_IPC_DENIED);
    spw_ipc_table_remove(4096);
    assert_int_equal(fcntl(sample.fds[0], F_GETFD), 0); /* still open: it is the program's */
    close(sample.fds[0]);
    close(mine);
}

/* Clients that connect and say nothing delay others, for a bounded time. */
static void test_silent_client(void **state)
{
    struct sockaddr_un address;
    struct sample sample;
    uint64_t begin = spw_clock_ns();
    int silent = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t length;

    export(&sample, 4096, 1);
    length = spw_ipc_address(&sample.handle, &address);
    assert_int_equal(connect(silent, (struct sockaddr *)&address, length), 0);
    assert_int_equal(fetch(&sample.handle, 1), SPW_IPC_GOT);
    assert_true(spw_clock_ns() - begin < SPW_IPC_WAIT_NS);
    close(silent);
    spw_ipc_table_remove(4096);
}

/* A process that is stopped keeps nobody waiting for long. */
static void test_stopped_owner(void **state)
{
    struct sample sample = {0};
    int ends[2];
    pid_t owner;
    uint64_t begin;

    assert_int_equal(pipe(ends), 0);
    owner = fork();
    assert_true(owner >= 0);
    if (owner == 0) {
        close(ends[0]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the test fails */
        spw_ipc_server_forget();
        export(&sample, 4096, 1);
        (void)!write(ends[1], &sample.handle, sizeof(sample.handle));
        (void)pause();
        _exit(0);
    }
    close(ends[1]); /* so that the end of the owner is seen */
    assert_int_equal(read(ends[0], &sample.handle, sizeof(sample.handle)), sizeof(sample.handle));
    assert_int_equal(fetch(&sample.handle, 1), SPW_IPC_GOT);
    assert_int_equal(kill(owner, SIGSTOP), 0);
    assert_int_equal(waitpid(owner, NULL, WUNTRACED), owner); /* all its threads have stopped */
    begin = spw_clock_ns();
    assert_int_equal(fetch(&sample.handle, 1), SPW_IPC_SILENT);
    assert_true(spw_clock_ns() - begin < 2 * SPW_IPC_WAIT_NS);
    assert_int_equal(kill(owner, SIGKILL), 0);
    assert_int_equal(waitpid(owner, NULL, 0), owner);
    assert_int_equal(fetch(&sample.handle, 1), SPW_IPC_GONE);
    close(ends[0]);
}

/* Without a free descriptor in the other process. */
static void test_no_descriptor(void **state)
{
    struct sample sample;
    int status, before;
    pid_t child;

    if (is_under_valgrind()) {
        skip(); /* it keeps the limit to itself, and checks only some calls */
    }
    export(&sample, 4096, 200);
    before = count_fds();
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit few = {.rlim_cur = 220, .rlim_max = 220};
        struct spw_ipc_block block;

        (void)setrlimit(RLIMIT_NOFILE, &few);
        _exit(spw_ipc_fetch(&sample.handle, &block) == SPW_IPC_GOT);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(count_fds_until(before), before);
    spw_ipc_table_remove(4096);
}

/* The descriptor of a message that is not whole is closed once: the caller has none to close. */
static void test_part_of_a_message(void **state)
{
    int before = count_fds(), fds[2] = {-1, -1}, sockets[2], sent = STDERR_FILENO;
    size_t count = 7;
    char data[16] = {0};

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    assert_true(spw_ipc_send(sockets[0], data, 8, &sent, 1));
    assert_false(spw_ipc_receive(sockets[1], data, sizeof(data), fds, 2, &count));
    assert_int_equal(count, 0);
    assert_int_equal(count_fds(), before + 2);
    assert_true(spw_ipc_send(sockets[0], data, sizeof(data), &sent, 1));
    assert_true(spw_ipc_receive(sockets[1], data, sizeof(data), fds, 2, &count));
    assert_int_equal(count, 1);
    assert_int_equal(close(fds[0]) | close(sockets[0]) | close(sockets[1]), 0);
}

/* ---- an owner that does not keep to the format ---- */

struct false_owner {
    struct spw_ipc_handle handle;
    struct spw_ipc_answer answers[2];
    size_t fds[2]; /* that come with each */
    int socket;
};

static void *answer_falsely(void *argument)
{
    struct false_owner *owner = argument;
    int client = accept(owner->socket, NULL, NULL), sent = STDERR_FILENO;
    struct spw_ipc_request request;
    size_t none;

    for (int i = 0; i < 2 && spw_ipc_receive(client, &request, sizeof(request), NULL, 0, &none);
         i++) {
        (void)spw_ipc_send(client, &owner->answers[i], sizeof(owner->answers[i]), &sent,
                           owner->fds[i]);
    }
    (void)close(client);
    return NULL;
}

/* Fetches from that owner. No descriptor stays open unless all is as it should be. */
static enum spw_ipc_reply fetch_falsely(struct false_owner *owner)
{
    struct sockaddr_un address;
    struct spw_ipc_block block;
    enum spw_ipc_reply reply;
    int before = count_fds();
    pthread_t thread;
    socklen_t length;

    owner->handle = (struct spw_ipc_handle){.version = SPW_IPC_VERSION, .pid = getpid()};
    length = spw_ipc_address(&owner->handle, &address);
    owner->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(owner->socket, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(owner->socket, 1), 0);
    assert_int_equal(pthread_create(&thread, NULL, answer_falsely, owner), 0);
    reply = spw_ipc_fetch(&owner->handle, &block);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(owner->socket);
    spw_ipc_block_fini(&block);
    assert_int_equal(count_fds(), before);
    return reply;
}

static void test_false_answers(void **state)
{
    const struct spw_ipc_answer good = {
        .status = SPW_IPC_GRANTED, .count = 2, .bytes = PAGE, .chunks = {PAGE}};
    struct false_owner owner = {.answers = {good, good}, .fds = {1, 1}};

    assert_int_equal(fetch_falsely(&owner), SPW_IPC_GOT);
    owner.answers[1].count = 3; /* which it was not before */
    assert_int_equal(fetch_falsely(&owner), SPW_IPC_SILENT);
    owner.answers[1] = good;
    owner.answers[1].chunks[0] = 0;
    assert_int_equal(fetch_falsely(&owner), SPW_IPC_SILENT);
    owner.answers[1].chunks[0] = UINT64_MAX / 2;
    assert_int_equal(fetch_falsely(&owner), SPW_IPC_SILENT);
    owner.answers[1] = good;
    owner.fds[1] = 0;
    assert_int_equal(fetch_falsely(&owner), SPW_IPC_SILENT);
    owner.fds[1] = 1;
    owner.answers[1].status = SPW_IPC_UNKNOWN;
    assert_int_equal(fetch_falsely(&owner), SPW_IPC_DENIED);
}

/* ---- other users ---- */

enum { NOBODY = 65534 };

/* Runs a function in a child that has become another user, as a program with a set-user-ID bit
 * does; its result is the status. */
static int run_as_another_user(int (*act)(struct sample *sample, int out), struct sample *sample,
                               int out)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        if (seteuid(NOBODY) != 0) {
            _exit(101);
        }
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also when the test fails */
        _exit(act(sample, out));
    }
    return child;
}

/* Asks as the client does, but does not look whom it asks. */
static int ask_without_looking(struct sample *sample, int out)
{
    struct spw_ipc_request request = {.version = SPW_IPC_VERSION,
                                      .export_id = sample->handle.export_id};
    struct sockaddr_un address;
    socklen_t length = spw_ipc_address(&sample->handle, &address);
    int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fds[SPW_IPC_BATCH];
    struct spw_ipc_answer answer;
    size_t count;

    (void)out;
    memcpy(request.key, sample->handle.key, sizeof(request.key));
    if (connect(client, (struct sockaddr *)&address, length) != 0) {
        return 102;
    }
    (void)spw_ipc_send(client, &request, sizeof(request), NULL, 0);
    return spw_ipc_receive(client, &answer, sizeof(answer), fds, SPW_IPC_BATCH, &count);
}

static int fetch_once(struct sample *sample, int out)
{
    struct spw_ipc_block block;

    (void)out;
    return (int)spw_ipc_fetch(&sample->handle, &block);
}

/* A process of another user gets no answer, even if it has the key; ours goes on answering. */
static void test_client_of_another_user(void **state)
{
    static int (*const acts[])(struct sample *, int) = {ask_without_looking, fetch_once};
    const int expected[] = {false, SPW_IPC_GONE};
    struct sample sample;

    if (geteuid() != 0) {
        print_message("only root can become another user\n");
        skip();
    }
    export(&sample, 4096, 1);
    for (int i = 0; i < 2; i++) {
        int status, child = run_as_another_user(acts[i], &sample, /* out */ -1);

        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), expected[i]);
    }
    assert_int_equal(fetch(&sample.handle, 1), SPW_IPC_GOT);
    spw_ipc_table_remove(4096);
}

/* Answers everybody, under the name of a process of ours. */
static int answer_anybody(struct sample *sample, int out)
{
    struct spw_ipc_answer answer = {
        .status = SPW_IPC_GRANTED, .count = 1, .bytes = PAGE, .chunks = {PAGE}};
    struct sockaddr_un address;
    socklen_t length = spw_ipc_address(&sample->handle, &address);
    int owner = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), sent = STDERR_FILENO;

    if (bind(owner, (struct sockaddr *)&address, length) != 0 || listen(owner, 1) != 0 ||
        write(out, "", 1) != 1) {
        return 103;
    }
    for (;;) {
        int client = accept(owner, NULL, NULL);

        /* The answer is there before the client asks. */
        (void)spw_ipc_send(client, &answer, sizeof(answer), &sent, 1);
        (void)usleep(1000 * 1000);
        (void)close(client);
    }
}

static void test_owner_of_another_user(void **state)
{
    struct sample sample = {.handle = {.version = SPW_IPC_VERSION, .pid = (uint32_t)getpid()}};
    struct spw_ipc_block block;
    int ends[2], owner;
    char ready;

    if (geteuid() != 0) {
        print_message("only root can become another user\n");
        skip();
    }
    assert_int_equal(pipe(ends), 0);
    owner = run_as_another_user(answer_anybody, &sample, ends[1]);
    assert_int_equal(close(ends[1]), 0); /* so that the end of the owner is seen */
    assert_int_equal(read(ends[0], &ready, 1), 1);
    assert_int_equal(spw_ipc_fetch(&sample.handle, &block), SPW_IPC_GONE);
    assert_int_equal(block.count, 0);
    assert_int_equal(kill(owner, SIGKILL), 0);
    assert_int_equal(waitpid(owner, NULL, 0), owner);
    assert_int_equal(close(ends[0]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_wrong_handles),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_closed_by_the_program),
        cmocka_unit_test(test_silent_client),
        cmocka_unit_test(test_stopped_owner),
        cmocka_unit_test(test_no_descriptor),
        cmocka_unit_test(test_part_of_a_message),
        cmocka_unit_test(test_false_answers),
        cmocka_unit_test(test_client_of_another_user),
        cmocka_unit_test(test_owner_of_another_user),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
