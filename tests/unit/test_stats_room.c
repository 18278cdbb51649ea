/* The room for call sites, beside the statistics. */
#include "stats/shm.h"

#include "child.h"
#include "folder.h"

#include <stdlib.h>
#include <sys/resource.h>

enum { ROOM = 8 << 20 };

static void fill_room(bool is_file)
{
    char path[SPW_STATS_PATH];
    char *room = spw_stats_shm_create(ROOM, path);

    CHECK(room != NULL && (path[0] != '\0') == is_file && (access(path, F_OK) == 0) == is_file);
    CHECK(spw_stats_shm_back(room + ROOM - 10, 10));
    room[0] = room[ROOM - 1] = 'x';
    unlink(path);
    spw_stats_shm_forget();
    CHECK(room[0] == '\0' && room[ROOM - 1] == '\0');
    room[ROOM - 1] = 'y';
    CHECK(spw_stats_shm_create(ROOM, path) == room && (path[0] != '\0') == is_file);
    CHECK(!is_file || room[ROOM - 1] == '\0');
    unlink(path);
}

static void have_a_folder(void)
{
    setenv("SPILLWAY_RUN_DIR", folder, 1);
    fill_room(/* is_file */ true);
}

static void have_none(void)
{
    unsetenv("SPILLWAY_RUN_DIR");
    fill_room(/* is_file */ false);
}

/* A file beyond the limit would end the process by a signal. */
static void have_a_limit(void)
{
    const struct rlimit limit = {ROOM - 1, ROOM - 1};

    setenv("SPILLWAY_RUN_DIR", folder, 1);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    fill_room(/* is_file */ false);
}

/* A program that closes every descriptor it knows and opens files of its own: they are not touched.
 */
static void lose_the_descriptor(void)
{
    char path[SPW_STATS_PATH];
    char *room;
    int other;

    setenv("SPILLWAY_RUN_DIR", folder, 1);
    room = spw_stats_shm_create(ROOM, path);
    CHECK(spw_stats_shm_back(room, 1));
    other = open(in_folder("other"), O_RDWR | O_CREAT, 0600);
    for (int fd = 3; fd < 4096; fd++) {
        if (fd != other && fcntl(fd, F_GETFD) >= 0) {
            CHECK(dup2(other, fd) == fd);
        }
    }
    CHECK(!spw_stats_shm_back(room + ROOM / 2, 1));
    CHECK(lseek(other, 0, SEEK_END) == 0);
    unlink(path);
    unlink(in_folder("other"));
}

static void test_room(void **state)
{
    in_child(have_a_folder);
    in_child(have_none);
    in_child(have_a_limit);
    in_child(lose_the_descriptor);
}

static int set_up(void **state)
{
    return mkdtemp(folder) != NULL ? 0 : -1;
}

/* Fails when a test has left anything behind. */
static int tear_down(void **state)
{
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
