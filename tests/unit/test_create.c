/* Files are created, and links followed, so that nobody else can choose what is written to. */
#include "system/create.h"

#include "child.h"
#include "system/start.h"
#include "folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

/* In the place of the system's: the first numbers are known, as if they were guessed. */
static uint32_t next_number;

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
    assert_int_equal(length, sizeof(next_number));
    memcpy(buffer, &next_number, length);
    next_number++;
    return (ssize_t)length;
}

static const char *numbered(unsigned number)
{
    char name[64];

    snprintf(name, sizeof(name), "s.json.%d.%08x.tmp", (int)getpid(), number);
    return in_folder(name);
}

static void test_taken_names_are_left_alone(void **state)
{
    char name[128];
    int fd;

    write_text(in_folder("victim"), "precious");
    assert_int_equal(symlink("victim", numbered(7)), 0);
    assert_int_equal(symlink("nowhere", numbered(8)), 0);
    write_text(numbered(9), "theirs");
    next_number = 7;
    fd = spw_create_beside(in_folder("s.json"), 0644, name, sizeof(name));
    assert_true(fd >= 0);
    assert_string_equal(name, numbered(10));
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    assert_string_equal(content(in_folder("victim")), "precious");
    assert_string_equal(content(numbered(9)), "theirs");
    assert_int_equal(access(in_folder("nowhere"), F_OK), -1);
    for (unsigned i = 7; i <= 10; i++) {
        assert_int_equal(unlink(numbered(i)), 0);
    }
    unlink(in_folder("victim"));
}

/* A file without a name gets one that is not taken. Paths may be relative. */
static void test_nameless(void **state)
{
    char name[128], cut[16];
    int fd = spw_create_nameless(in_folder("s.json"), 0640);
    struct stat status;

    if (fd < 0) {
        assert_int_equal(errno, EOPNOTSUPP);
        skip();
    }
    assert_int_equal(write(fd, "mine", 4), 4);
    write_text(in_folder("victim"), "precious");
    next_number = 7;
    assert_int_equal(symlink("victim", numbered(7)), 0);
    assert_int_equal(symlink("nowhere", numbered(8)), 0);
    write_text(numbered(9), "theirs");
    assert_int_equal(spw_create_name(fd, in_folder("s.json"), name, sizeof(name)), 0);
    close(fd);
    assert_string_equal(name, numbered(10));
    assert_string_equal(content(name), "mine");
    assert_int_equal(stat(name, &status), 0);
    assert_int_equal(status.st_mode & 07777 & ~0640, 0);
    assert_string_equal(content(in_folder("victim")), "precious");
    assert_string_equal(content(numbered(9)), "theirs");
    assert_int_equal(unlink(in_folder("victim")), 0);
    for (unsigned i = 7; i <= 10; i++) {
        assert_int_equal(unlink(numbered(i)), 0);
    }

    assert_int_equal(chdir(folder), 0);
    fd = spw_create_nameless("s.json", 0600);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_nlink, 0);
    assert_int_equal(spw_create_name(fd, "s.json", cut, sizeof(cut)), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    assert_int_equal(spw_create_name(fd, "/no/such/folder/s.json", name, sizeof(name)), -1);
    assert_int_equal(errno, ENOENT);
    close(fd);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(spw_create_nameless("/no/such/folder/s.json", 0600), -1);
    assert_int_equal(errno, ENOENT);
}

static void test_no_name_fits(void **state)
{
    char name[16];

    assert_int_equal(spw_create_beside(in_folder("s.json"), 0644, name, sizeof(name)), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    assert_int_equal(spw_create_beside(in_folder("no/folder"), 0644, name, 0), -1);
}

/* Appends a byte; returns 0, or the error that kept it from it. */
static int append(const char *path)
{
    int fd = spw_create_open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);

    if (fd < 0) {
        return errno;
    }
    assert_int_equal(write(fd, "+", 1), 1);
    close(fd);
    return 0;
}

static void test_own_links_are_followed(void **state)
{
    char started[PATH_MAX];

    write_text(in_folder("log"), "a");
    assert_int_equal(append(in_folder("log")), 0);
    assert_int_equal(symlink("log", in_folder("link")), 0);
    assert_int_equal(symlink(in_folder("link"), in_folder("second")), 0);
    assert_int_equal(append(in_folder("second")), 0);
    assert_string_equal(content(in_folder("log")), "a++");
    unlink(in_folder("log"));
    assert_int_equal(append(in_folder("second")), 0); /* creates what the link names */
    assert_string_equal(content(in_folder("log")), "+");
    unlink(in_folder("log"));
    unlink(in_folder("link"));
    unlink(in_folder("second"));
    assert_int_equal(symlink("loop", in_folder("loop")), 0);
    assert_int_equal(append(in_folder("loop")), ELOOP);
    unlink(in_folder("loop"));
    assert_int_equal(append(in_folder("no/log")), ENOENT);
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(append("create-relative"), 0);
    assert_int_equal(access(in_folder("create-relative"), F_OK), -1);
    assert_true(spw_start_path("create-relative", started, sizeof(started)));
    assert_int_equal(unlink(started), 0);
}

/* A link of somebody else's, in folders of several modes. */
static void test_links_of_others(void **state)
{
    enum { NOBODY = 65534 };
    static const struct {
        mode_t mode;
        int error;
    } rows[] = {{0755, 0}, {01777, EACCES}, {0777, EACCES}, {01755, EACCES}};

    if (geteuid() != 0) {
        skip();
    }
    assert_int_equal(symlink("log", in_folder("link")), 0);
    assert_int_equal(lchown(in_folder("link"), NOBODY, NOBODY), 0);
    assert_int_equal(symlink("link", in_folder("own")), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_text(in_folder("log"), "");
        assert_int_equal(chmod(folder, rows[i].mode), 0);
        assert_int_equal(append(in_folder("link")), rows[i].error);
        assert_int_equal(append(in_folder("own")), rows[i].error);
        assert_string_equal(content(in_folder("log")), rows[i].error == 0 ? "++" : "");
    }
    chmod(folder, 0700);
    unlink(in_folder("log"));
    unlink(in_folder("link"));
    unlink(in_folder("own"));
}

/* /dev/stderr, /dev/fd/N and /proc/self/fd/N lead to what the process has open already, which may
 * have no path. */
static void test_descriptors(void **state)
{
    char paths[3][64], text[8];
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    snprintf(paths[0], sizeof(paths[0]), "/dev/fd/%d", ends[1]);
    snprintf(paths[1], sizeof(paths[1]), "/proc/self/fd/%d", ends[1]);
    snprintf(paths[2], sizeof(paths[2]), "/proc/%d/fd/%d", (int)getpid(), ends[1]);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(append(paths[i]), 0);
        assert_int_equal(read(ends[0], text, sizeof(text)), 1);
    }
    close(ends[0]);
    close(ends[1]);
}

static void append_to_streams(void)
{
    redirect_errors(in_folder("errors"));
    CHECK(append("/dev/stderr") == 0);
    CHECK(append("/dev/null") == 0);
}

static void test_streams(void **state)
{
    in_child(append_to_streams);
    assert_string_equal(content(in_folder("errors")), "+");
    unlink(in_folder("errors"));
}

static int set_up(void **state)
{
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_names_are_left_alone),
        cmocka_unit_test(test_nameless),
        cmocka_unit_test(test_no_name_fits),
        cmocka_unit_test(test_own_links_are_followed),
        cmocka_unit_test(test_links_of_others),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_streams),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
