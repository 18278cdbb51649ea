/* The process that asks NVIDIA's cuDNN: its library, a stub here, its answers and its socket. */
#include "cli/cudnn/answers.h"
#include "cli/cudnn/choice.h"
#include "cli/cudnn/library.h"
#include "cli/cudnn/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "cudnn_stub.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROPERTIES "{\"deviceVer\":900}"

enum { GRAPH = 15, HEURISTICS = 4, OF_GRAPH = 201, NUMBERS = 7, NOBODY = 65534 };

static char *library, *old_library;
static struct sim_cudnn_engine engines[SIM_CUDNN_ENGINES];

/* ---- questions ---- */

struct content {
    unsigned char bytes[1024];
    size_t count;
};

static void put(struct content *content, const void *from, size_t bytes)
{
    assert_true(content->count + bytes <= sizeof(content->bytes));
    memcpy(content->bytes + content->count, from, bytes);
    content->count += bytes;
}

static void put_node(struct content *content, int kind, int count)
{
    const struct sim_cudnn_node node = {kind, count};

    put(content, &node, sizeof(node));
}

static void put_leaf(struct content *content, int name, int type, int count, size_t bytes)
{
    const struct sim_cudnn_leaf leaf = {name, type, count, (int)bytes};

    put(content, &leaf, sizeof(leaf));
}

/* Heuristics for a graph that has two numbers, asked with a value of SIM_CUDNN_TF32. */
static struct content question_with(const char *tf32, const char *path, int64_t first, int name)
{
    const int64_t numbers[] = {first, 1};
    struct content content = {.count = 0};

    put(&content, path, strlen(path) + 1);
    put(&content, tf32, strlen(tf32) + 1);
    put(&content, PROPERTIES, sizeof(PROPERTIES));
    put_node(&content, HEURISTICS, 1);
    put_leaf(&content, OF_GRAPH, STUB_DESCRIPTOR, 1, 0);
    put_node(&content, GRAPH, 1);
    put_leaf(&content, name, STUB_INT64, 2, sizeof(numbers));
    put(&content, numbers, sizeof(numbers));
    return content;
}

static struct content question(const char *path, int64_t first, int name)
{
    return question_with("", path, first, name);
}

/* The workspace of the first engine that the stub names: the numbers, and the device's bytes. */
static int64_t expected(int64_t first)
{
    int64_t sum = first + 1;

    for (size_t i = 0; i < strlen(PROPERTIES); i++) {
        sum += PROPERTIES[i];
    }
    return sum;
}

static bool ask(const struct content *content, size_t *ret_count)
{
    return spw_cli_cudnn_answer(content->bytes, content->count, engines, ret_count);
}

/* ---- the library ---- */

static void test_engines(void **state)
{
    const struct content content = question(library, 1000, NUMBERS);
    size_t count;

    assert_true(ask(&content, &count));
    assert_int_equal(count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(engines[i].index, 10 + i);
        assert_int_equal(engines[i].workspace_bytes, expected(1000) * (i + 1));
        assert_int_equal(engines[i].numerical_notes, i == 2 ? 1 << 4 | 1 << 9 : 1 << 4);
        assert_int_equal(engines[i].behavior_notes, i == 2 ? 1 << 0 | 1 << 9 : 1 << 0);
    }
}

/* The stub is looked up once: each dlopen costs ThreadSanitizer memory that it keeps. */
static int count_descriptors(void)
{
    static int (*live)(void);

    if (live == NULL) {
        void *stub = dlopen(library, RTLD_NOW | RTLD_NOLOAD);

        assert_non_null(stub);
        *(void **)&live = dlsym(stub, "stub_live");
    }
    return live();
}

/* Only the descriptor of the device stays. */
static void test_descriptors_are_freed(void **state)
{
    const struct content good = question(library, 1, NUMBERS);
    const struct content refused = question(library, 1, STUB_REFUSED);
    size_t count = 1;

    assert_true(ask(&good, &count));
    assert_int_equal(count_descriptors(), 1);
    assert_true(ask(&refused, &count));
    assert_int_equal(count, 0);
    assert_int_equal(count_descriptors(), 1);
}

/* Every beginning of a question, and questions with wrong bytes, some of which are well formed. */
static void test_malformed(void **state)
{
    const struct content good = question(library, 1, NUMBERS);
    size_t prefix = strlen(library) + 2 + sizeof(PROPERTIES), count;
    unsigned seed = 1;

    for (size_t bytes = 0; bytes < good.count; bytes++) {
        struct content cut = good;

        cut.count = bytes;
        count = 0;
        assert_true(!ask(&cut, &count) || count == 0);
    }
    for (int i = 0; i < 20000; i++) {
        struct content wrong = good;

        seed = seed * 1103515245 + 12345;
        wrong.bytes[prefix + (seed >> 16) % (good.count - prefix)] ^= (unsigned char)(1 << i % 8);
        (void)ask(&wrong, &count);
        assert_int_equal(count_descriptors(), 1);
    }
}

/* In a child, which has loaded no library yet. */
static bool child_asks(const char *path)
{
    const struct content content = question(path, 1, NUMBERS);
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        size_t count = 0;

        _exit(ask(&content, &count) && count == 3);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 1;
}

/* A copy of the library that another user can have written. */
static void make_copy(const char *path, mode_t mode)
{
    char command[2 * PATH_MAX + 16];

    (void)snprintf(command, sizeof(command), "cp '%s' '%s'", library, path);
    assert_int_equal(system(command), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void test_other_libraries(void **state)
{
    const struct content other = question("/other/libcudnn.so.9", 1, NUMBERS);
    const struct content setting = question_with("0", library, 1, NUMBERS);
    char copy[] = "/tmp/spillway-cudnn-XXXXXX";
    const struct content own = question(library, 1, NUMBERS);
    size_t count;

    assert_false(child_asks(old_library)); /* it cannot be asked without a device */
    assert_false(child_asks("/no/such/libcudnn.so.9"));
    assert_false(child_asks(strrchr(library, '/') + 1)); /* relative: another folder's file */
    assert_int_equal(close(mkstemp(copy)), 0);
    make_copy(copy, 0755);
    assert_true(child_asks(copy));
    make_copy(copy, 0757);
    assert_false(child_asks(copy));
    assert_int_equal(unlink(copy), 0);
    assert_true(child_asks(library));
    assert_true(ask(&own, &count));
    assert_false(ask(&other, &count));   /* one library in a process */
    assert_false(ask(&setting, &count)); /* it has read another value */
}

/* ---- answers ---- */

static char cache[] = "/tmp/spillway-XXXXXX", answers[64];

static int make_cache(void **state)
{
    if (mkdtemp(cache) == NULL || setenv("XDG_CACHE_HOME", cache, 1) != 0) {
        return -1;
    }
    (void)snprintf(answers, sizeof(answers), "%s/spillway/cudnn-answers-4", cache);
    return 0;
}

static int remove_cache(void **state)
{
    char folder[64];

    (void)snprintf(folder, sizeof(folder), "%s/spillway", cache);
    (void)unlink(answers);
    (void)rmdir(folder);
    return rmdir(cache);
}

/* In a child, since the file is opened once. 1: found with the engines of `value`; 0: not found. */
static int look(int64_t first, int64_t value, bool add)
{
    const struct content content = question(library, first, NUMBERS);
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        const struct sim_cudnn_engine engine = {.index = 3, .workspace_bytes = value};
        size_t count;

        spw_cli_cudnn_answers_open();
        if (add) {
            spw_cli_cudnn_answers_add(content.bytes, content.count, &engine, value >= 0);
        }
        if (!spw_cli_cudnn_answers_find(content.bytes, content.count, engines, &count)) {
            _exit(0);
        }
        _exit(count == (value >= 0) && (count == 0 || engines[0].workspace_bytes == value) ? 1 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static off_t size_of(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? status.st_size : -1;
}

static void test_answers_last(void **state)
{
    assert_int_equal(look(1, 77, false), 0);
    assert_int_equal(look(1, 77, true), 1);
    assert_int_equal(look(2, -1, true), 1); /* no engine: the reason may pass */
    assert_int_equal(look(1, 77, false), 1);
    assert_int_equal(look(2, -1, false), 0);
    assert_int_equal(look(3, 77, false), 0);
}

/* A record that was cut off is dropped, and those before it stay. */
static void test_cut_file(void **state)
{
    off_t whole = size_of(answers);

    assert_int_equal(look(4, 5, true), 1);
    assert_int_equal(truncate(answers, size_of(answers) - 3), 0);
    assert_int_equal(look(4, 5, false), 0);
    assert_int_equal(size_of(answers), whole);
    assert_int_equal(look(1, 77, false), 1);
    assert_int_equal(look(4, 6, true), 1);
    assert_int_equal(look(4, 6, false), 1);
}

/* A byte of an engine differs. */
static void test_damaged_file(void **state)
{
    off_t bytes = size_of(answers);
    int file = open(answers, O_RDWR);
    char byte;

    assert_int_equal(pread(file, &byte, 1, bytes - 12), 1);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, bytes - 12), 1);
    close(file);
    assert_int_equal(look(4, 6, false), 0);
    assert_int_equal(look(1, 77, false), 1);
}

/* A launcher that was stopped has it. */
static void test_locked_file(void **state)
{
    int file = open(answers, O_RDWR);

    assert_int_equal(flock(file, LOCK_EX), 0);
    assert_int_equal(look(1, 77, false), 0);
    assert_int_equal(look(6, 8, true), 1); /* in memory */
    close(file);
    assert_int_equal(look(6, 8, false), 0);
    assert_int_equal(look(1, 77, false), 1);
}

static void test_file_of_others(void **state)
{
    assert_int_equal(chmod(answers, 0666), 0);
    assert_int_equal(look(1, 77, false), 0);
    assert_int_equal(chmod(answers, 0600), 0);
    assert_int_equal(look(1, 77, false), 1);
}

static void test_link(void **state)
{
    char target[80];

    (void)snprintf(target, sizeof(target), "%s.target", answers);
    assert_int_equal(rename(answers, target), 0);
    assert_int_equal(symlink(target, answers), 0);
    assert_int_equal(look(1, 77, false), 0);
    assert_int_equal(look(5, 1, true), 1); /* in memory */
    assert_int_equal(unlink(answers), 0);
    assert_int_equal(rename(target, answers), 0);
    assert_int_equal(look(1, 77, false), 1);
}

/* ---- the library that the user names ---- */

static bool choose(const char *text, struct spw_cli_cudnn_choice *ret_choice)
{
    assert_int_equal(setenv("SPILLWAY_SIM_CUDNN", text, 1), 0);
    return spw_cli_cudnn_choose("test", ret_choice);
}

/* Runs a command of the shell in the cache folder. */
static void in_cache(const char *command)
{
    char text[4 * PATH_MAX];

    (void)snprintf(text, sizeof(text), "cd '%s' && %s", cache, command);
    assert_int_equal(system(text), 0);
}

static void in_cache_with(const char *format, const char *path)
{
    char command[2 * PATH_MAX];

    (void)snprintf(command, sizeof(command), format, path);
    in_cache(command);
}

static void test_choice_by_version(void **state)
{
    struct spw_cli_cudnn_choice choice;

    assert_int_equal(unsetenv("SPILLWAY_SIM_CUDNN"), 0);
    assert_true(spw_cli_cudnn_choose("test", &choice));
    assert_string_equal(choice.path, "");
    assert_false(choose("9.8", &choice));
    in_cache("mkdir -p spillway/cudnn/old/lib spillway/cudnn/9.8/nvidia/cudnn/lib");
    in_cache_with("ln -s '%s' spillway/cudnn/old/lib/libcudnn.so.9", old_library);
    in_cache_with("ln -s '%s' spillway/cudnn/9.8/nvidia/cudnn/lib/libcudnn.so.9", library);
    for (size_t i = 0; i < 3; i++) {
        assert_true(choose((const char *const[]){"9.8", "9.8.0", "9.8.0.87"}[i], &choice));
        assert_string_equal(choice.path, library);
        assert_string_equal(choice.version, "9.8.0");
    }
    for (size_t i = 0; i < 5; i++) {
        assert_false(
            choose((const char *const[]){"9.80", "9.7", "9.8.1", "9.8.05", "8"}[i], &choice));
    }
}

static void test_choice_by_path(void **state)
{
    struct spw_cli_cudnn_choice choice;
    char folder[PATH_MAX];

    (void)snprintf(folder, sizeof(folder), "%s/spillway/cudnn/9.8", cache);
    assert_true(choose(library, &choice));
    assert_string_equal(choice.version, "9.8.0");
    assert_true(choose(folder, &choice));
    assert_string_equal(choice.path, library);
    assert_false(choose(old_library, &choice)); /* it cannot be asked without a device */
    assert_false(choose(cache, &choice));
    assert_false(choose("nowhere", &choice));
    in_cache_with("cp '%s' writable && chmod o+w writable", library);
    (void)snprintf(folder, sizeof(folder), "%s/writable", cache);
    assert_false(choose(folder, &choice)); /* another user can have written it */
    in_cache("rm -r spillway/cudnn writable");
}

/* ---- the process ---- */

static int connect_to_server(void)
{
    const char *name = getenv(SIM_CUDNN_SOCKET);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    memcpy(address.sun_path + 1, name, strlen(name));
    assert_int_equal(connect(fd, (const struct sockaddr *)&address,
                             (socklen_t)(sizeof(sa_family_t) + 1 + strlen(name))),
                     0);
    return fd;
}

/* The number of engines; -1: the process has closed the connection without an answer. */
static int exchange(const struct content *content)
{
    struct sim_cudnn_header header = {SIM_CUDNN_MAGIC, (uint32_t)content->count};
    int fd = connect_to_server(), count = -1;

    if (sim_cudnn_send(fd, &header, sizeof(header)) &&
        sim_cudnn_send(fd, content->bytes, content->count) &&
        sim_cudnn_receive(fd, &header, sizeof(header))) {
        assert_int_equal(header.magic, SIM_CUDNN_MAGIC);
        assert_true(sim_cudnn_receive(fd, engines, header.bytes));
        count = (int)(header.bytes / sizeof(engines[0]));
    }
    close(fd);
    return count;
}

static void test_server(void **state)
{
    const struct content content = question(library, 9, NUMBERS);

    spw_cli_cudnn_server_start();
    spw_cli_cudnn_server_start(); /* it runs already */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(exchange(&content), 3);
        assert_int_equal(engines[1].workspace_bytes, 2 * expected(9));
    }
}

/* A process can load one library only, so that another one needs another process. */
static void test_other_server(void **state)
{
    const struct content content = question(library, 9, NUMBERS);
    char *name = strdup(getenv(SIM_CUDNN_SOCKET));
    int silent = connect_to_server();
    char byte;

    assert_int_equal(setenv(SIM_CUDNN_LIBRARY, old_library, 1), 0);
    spw_cli_cudnn_server_start();
    assert_string_not_equal(getenv(SIM_CUDNN_SOCKET), name);
    assert_true(recv(silent, &byte, 1, 0) <= 0); /* the first one has ended */
    close(silent);
    assert_int_equal(unsetenv(SIM_CUDNN_LIBRARY), 0);
    spw_cli_cudnn_server_start();
    assert_int_equal(exchange(&content), 3);
    free(name);
}

/* A connection that ends without a question, and one that is in use meanwhile. */
static void test_many_programs(void **state)
{
    enum { PROGRAMS = 40 };
    const struct content content = question(library, 9, NUMBERS);
    int status, silent = connect_to_server();

    close(silent);
    for (int i = 0; i < PROGRAMS; i++) {
        if (fork() == 0) {
            _exit(exchange(&content) == 3 ? 0 : 1);
        }
    }
    for (int i = 0; i < PROGRAMS; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
}

static void test_garbage(void **state)
{
    const struct content content = question(library, 9, NUMBERS);
    const struct sim_cudnn_header wrong = {1, 8}, large = {SIM_CUDNN_MAGIC, SIM_CUDNN_MOST + 1};
    char byte;
    int fd = connect_to_server();

    assert_int_equal(send(fd, &wrong, sizeof(wrong), MSG_NOSIGNAL), sizeof(wrong));
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    close(fd);
    fd = connect_to_server();
    assert_int_equal(send(fd, &large, sizeof(large), MSG_NOSIGNAL), sizeof(large));
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    close(fd);
    assert_int_equal(exchange(&content), 3);
}

/* A process of another user cannot have a library loaded. */
static void test_other_user(void **state)
{
    const struct content content = question(library, 9, NUMBERS);
    int status;
    pid_t pid;

    if (geteuid() != 0) {
        skip(); /* only root can become another user */
    }
    pid = fork();
    if (pid == 0) {
        _exit(setuid(NOBODY) == 0 && exchange(&content) == -1 ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest of_library[] = {
        cmocka_unit_test(test_other_libraries),
        cmocka_unit_test(test_engines),
        cmocka_unit_test(test_descriptors_are_freed),
        cmocka_unit_test(test_malformed),
    };
    const struct CMUnitTest of_answers[] = {
        cmocka_unit_test(test_answers_last),      cmocka_unit_test(test_cut_file),
        cmocka_unit_test(test_damaged_file),      cmocka_unit_test(test_locked_file),
        cmocka_unit_test(test_file_of_others),    cmocka_unit_test(test_link),
        cmocka_unit_test(test_choice_by_version), cmocka_unit_test(test_choice_by_path),
    };
    const struct CMUnitTest of_server[] = {
        cmocka_unit_test(test_server),        cmocka_unit_test(test_other_server),
        cmocka_unit_test(test_many_programs), cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_other_user),
    };
    int failed;

    if (argc == 2 && strcmp(argv[1], SPW_CLI_CUDNN_SERVER) == 0) {
        return spw_cli_cudnn_server_child(argc - 1, argv + 1);
    }
    if (argc != 3) {
        return 2;
    }
    library = realpath(argv[1], NULL);
    old_library = realpath(argv[2], NULL);
    failed = cmocka_run_group_tests_name("library", of_library, NULL, NULL);
    failed += cmocka_run_group_tests_name("answers", of_answers, make_cache, remove_cache);
    failed += cmocka_run_group_tests_name("server", of_server, NULL, NULL);
    free(library);
    free(old_library);
    return failed;
}
