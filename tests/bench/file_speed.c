/* Measures the file of a pause beside its disk, in GB/s. Prints lines "name number".
 *
 * usage: file_speed FOLDER MIB
 *
 * The file of a pause also computes and compares hashes. The disk is written and read past the page
 * cache, in room that was reserved before; "cached" goes through the page cache, and includes the
 * time until the disk has everything. */
#include "migrate/host/swap_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct spw_swap_file file;

static void must(bool condition, const char *what)
{
    if (!condition) {
        perror(what);
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void show(const char *name, double begin, size_t pieces)
{
    printf("%s %.3f\n", name, (double)pieces * SPW_SWAP_BUFFER_BYTES / 1e9 / (now() - begin));
}

static void measure_pause(size_t pieces)
{
    uint64_t written = 0, read = 0;
    double begin = now();

    spw_migrate_swap_file_reserve(&file, (uint64_t)pieces * SPW_SWAP_BUFFER_BYTES);
    for (size_t i = 0; i < pieces; i++) {
        must(spw_migrate_swap_file_append(&file, SPW_SWAP_BUFFER_BYTES, &written) == 0, "append");
    }
    show("file of a pause, write", begin, pieces);
    begin = now();
    for (size_t i = 0; i < pieces; i++) {
        must(spw_migrate_swap_file_read(&file, i * SPW_SWAP_BUFFER_BYTES, SPW_SWAP_BUFFER_BYTES,
                                        &read) == 0,
             "read");
    }
    show("file of a pause, read", begin, pieces);
    must(read == written, "hash");
    spw_migrate_swap_file_cut(&file, 0);
}

static void measure_disk(const char *folder, int flags, size_t pieces, const char *const names[2])
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
    off_t bytes = (off_t)pieces * SPW_SWAP_BUFFER_BYTES;
    double begin = now();

    must(fd >= 0 && (flags == 0 || fallocate(fd, 0, 0, bytes) == 0), "open");
    for (off_t at = 0; at < bytes; at += SPW_SWAP_BUFFER_BYTES) {
        must(pwrite(fd, file.buffer, SPW_SWAP_BUFFER_BYTES, at) == SPW_SWAP_BUFFER_BYTES, "pwrite");
    }
    must(flags != 0 || fdatasync(fd) == 0, "fdatasync");
    show(names[0], begin, pieces);
    must(posix_fadvise(fd, 0, bytes, POSIX_FADV_DONTNEED) == 0, "posix_fadvise");
    begin = now();
    for (off_t at = 0; at < bytes; at += SPW_SWAP_BUFFER_BYTES) {
        must(pread(fd, file.buffer, SPW_SWAP_BUFFER_BYTES, at) == SPW_SWAP_BUFFER_BYTES, "pread");
    }
    show(names[1], begin, pieces);
    close(fd);
}

int main(int argc, char **argv)
{
    static const char *const disk[] = {"disk, write", "disk, read"};
    static const char *const cached[] = {"cached, write", "cached, read"};
    size_t pieces;

    if (argc != 3) {
        fprintf(stderr, "usage: file_speed FOLDER MIB\n");
        return 2;
    }
    pieces = ((size_t)atoi(argv[2]) << 20) / SPW_SWAP_BUFFER_BYTES;
    must(spw_migrate_swap_file_open(argv[1], &file) == 0, argv[1]);
    for (size_t i = 0; i < SPW_SWAP_BUFFER_BYTES; i++) {
        file.buffer[i] = (unsigned char)(i * 2654435761u >> 13);
    }
    measure_pause(pieces);
    measure_disk(argv[1], O_DIRECT, pieces, disk);
    measure_disk(argv[1], 0, pieces, cached);
    spw_migrate_swap_file_close(&file);
    return 0;
}
