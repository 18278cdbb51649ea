#include "sim/driver/memory/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bounds.h"
#include "sim/driver/core/device.h"
#include "sim/driver/core/run_record.h"
#include "system/file_limit.h"

/* The size of the file, within the limit of tmpfs. A large file uses offsets, not memory. */
#define FILE_BYTES (UINT64_C(1) << 62)
#define FRESH_FIRST                                                                                \
    (UINT64_C(1) << 61) /* offsets from here on: for extents whose wanted place is taken */

#define PAGE             ((size_t)4096)
#define WINDOW_BYTES     ((size_t)64 << 20)
#define WINDOW_COUNT     512
#define ISOLATED_WINDOWS 16

/* For accesses of at least this size, holes of the file are looked up, and zeros in the data are
 * searched for. */
#define SPARSE_BYTES ((size_t)64 << 10)

struct window {
    uint64_t offset;
    char *address; /* NULL: none */
};

struct sim_backing {
    int fd;
    bool isolated;             /* holds one extent, at offset 0, and is freed with it */
    struct sim_rangemap used;  /* placed extents, by offset */
    uint64_t fresh;            /* the next offset never used */
    unsigned int window_count; /* a power of two */
    struct window *windows;    /* direct-mapped by offset */
    struct sim_backing *next;  /* list of all */
};

static struct sim_backing *backings;

static struct sim_backing *device_backings[SPW_DEVICES_MAX];
static struct sim_backing *host_backings[SPW_HOST_NODES_MAX];

static struct sim_backing *wrap_file(int fd, unsigned int window_count)
{
    struct sim_backing *backing = calloc(1, sizeof(*backing));

    if (backing == NULL) {
        return NULL;
    }
    backing->windows = calloc(window_count, sizeof(*backing->windows));
    if (backing->windows == NULL) {
        free(backing);
        return NULL;
    }
    backing->fd = fd;
    backing->fresh = FRESH_FIRST;
    backing->window_count = window_count;
    backing->next = backings;
    backings = backing;
    return backing;
}

static struct sim_backing *new_backing(const char *name, uint64_t file_bytes,
                                       unsigned int window_count)
{
    static bool said;
    struct sim_backing *backing;
    int fd;

    if (!spw_file_may_have(file_bytes)) {
        if (!said) {
            sim_run_record_fail("simulated memory needs files of unlimited size, and their size is "
                                "limited here (ulimit -f)");
        }
        said = true;
        return NULL;
    }
    fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    if (ftruncate(fd, (off_t)file_bytes) != 0) {
        goto err_close;
    }
    backing = wrap_file(fd, window_count);
    if (backing == NULL) {
        goto err_close;
    }
    return backing;

err_close:
    close(fd);
    return NULL;
}

static void free_backing(struct sim_backing *backing)
{
    struct sim_backing **link = &backings;

    while (*link != backing) {
        link = &(*link)->next;
    }
    *link = backing->next;
    for (unsigned int i = 0; i < backing->window_count; i++) {
        if (backing->windows[i].address != NULL) {
            munmap(backing->windows[i].address, WINDOW_BYTES);
        }
    }
    close(backing->fd);
    free(backing->windows);
    free(backing);
}

static struct sim_backing *shared_backing(struct sim_backing **slot, const char *kind, int number)
{
    char name[64];

    if (*slot == NULL) {
        snprintf(name, sizeof(name), "spillway-sim-%s%d", kind, number);
        *slot = new_backing(name, FILE_BYTES, WINDOW_COUNT);
    }
    return *slot;
}

struct sim_backing *sim_backing_of_device(int ordinal)
{
    return shared_backing(&device_backings[ordinal], "device", ordinal);
}

struct sim_backing *sim_backing_of_host(int node)
{
    return shared_backing(&host_backings[node], "host", node);
}

uint64_t sim_backing_bytes(void)
{
    uint64_t bytes = 0;
    struct stat status;

    for (const struct sim_backing *backing = backings; backing != NULL; backing = backing->next) {
        if (fstat(backing->fd, &status) == 0) {
            bytes += (uint64_t)status.st_blocks * 512;
        }
    }
    return bytes;
}

static bool is_free(const struct sim_backing *backing, uint64_t offset, uint64_t size)
{
    const struct sim_range *next = sim_rangemap_from(&backing->used, offset);

    return offset < FRESH_FIRST && (next == NULL || next->start >= offset + size);
}

void sim_extent_place(struct sim_extent *extent, struct sim_backing *backing, uint64_t wanted,
                      uint64_t size)
{
    extent->backing = backing;
    extent->touched = false;
    extent->range.size = size;
    if (is_free(backing, wanted, size)) {
        extent->range.start = wanted;
    } else {
        extent->range.start = backing->fresh;
        backing->fresh += size;
    }
    sim_rangemap_insert(&backing->used, &extent->range);
}

int sim_extent_fd(const struct sim_extent *extent)
{
    return extent->backing->fd;
}

/* The address of a byte of the file, and the number of bytes mapped from there on; NULL if it
 * cannot be mapped. */
static char *window_at(const struct sim_backing *backing, uint64_t offset, size_t *ret_size)
{
    uint64_t number = offset / WINDOW_BYTES;
    struct window *window = &backing->windows[number & (backing->window_count - 1)];
    uint64_t start = number * WINDOW_BYTES;
    void *address;

    if (window->address == NULL || window->offset != start) {
        if (window->address != NULL) {
            munmap(window->address, WINDOW_BYTES);
            window->address = NULL;
        }
        address = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                       backing->fd, (off_t)start);
        if (address == MAP_FAILED) {
            return NULL;
        }
        window->address = address;
        window->offset = start;
    }
    *ret_size = WINDOW_BYTES - (size_t)(offset - start);
    return window->address + (offset - start);
}

/* Reads every byte, with pread: reading a hole through a window would allocate memory. */
static void read_bytes(const struct sim_backing *backing, uint64_t offset, char *dst, size_t size)
{
    while (size > 0) {
        ssize_t done = pread(backing->fd, dst, size, (off_t)offset);

        if (done <= 0) {
            memset(dst, 0, size);
            return;
        }
        offset += (uint64_t)done;
        dst += done;
        size -= (size_t)done;
    }
}

static void write_bytes(const struct sim_backing *backing, uint64_t offset, const char *src,
                        size_t size)
{
    while (size > 0) {
        size_t piece = 0;
        char *to = window_at(backing, offset, &piece);

        piece = piece < size ? piece : size;
        if (to != NULL) {
            memcpy(to, src, piece);
        } else if (!spw_file_may_have(offset + size)) {
            return;
        } else {
            ssize_t done = pwrite(backing->fd, src, size, (off_t)offset);

            if (done <= 0) {
                return;
            }
            piece = (size_t)done;
        }
        offset += piece;
        src += piece;
        size -= piece;
    }
}

/* The next stretch of data at or after `offset` and below `end`; false if only a hole is left. */
static bool next_data(const struct sim_backing *backing, uint64_t offset, uint64_t end,
                      uint64_t *ret_start, uint64_t *ret_end)
{
    off_t start = lseek(backing->fd, (off_t)offset, SEEK_DATA);
    off_t stop;

    if (start < 0 && errno != ENXIO) {
        *ret_start = offset; /* no holes are reported: the whole range counts as data */
        *ret_end = end;
        return true;
    }
    if (start < 0 || (uint64_t)start >= end) {
        return false;
    }
    stop = lseek(backing->fd, start, SEEK_HOLE);
    *ret_start = (uint64_t)start;
    *ret_end = stop < 0 || (uint64_t)stop > end ? end : (uint64_t)stop;
    return true;
}

void sim_extent_read(const struct sim_extent *extent, uint64_t at, void *dst, size_t size)
{
    uint64_t offset = extent->range.start + at, end = offset + size, start, stop;
    char *out = dst;

    if (!extent->touched) {
        memset(dst, 0, size);
        return;
    }
    if (size < SPARSE_BYTES) {
        read_bytes(extent->backing, offset, dst, size);
        return;
    }
    while (offset < end && next_data(extent->backing, offset, end, &start, &stop)) {
        memset(out, 0, (size_t)(start - offset));
        read_bytes(extent->backing, start, out + (start - offset), (size_t)(stop - start));
        out += stop - offset;
        offset = stop;
    }
    memset(out, 0, (size_t)(end - offset));
}

bool sim_extent_data(const struct sim_extent *extent, uint64_t at, size_t size, size_t *ret_skip,
                     size_t *ret_size)
{
    uint64_t offset = extent->range.start + at, start, stop;

    if (!extent->touched || !next_data(extent->backing, offset, offset + size, &start, &stop)) {
        return false;
    }
    *ret_skip = (size_t)(start - offset);
    *ret_size = (size_t)(stop - start);
    return true;
}

uint64_t sim_extent_content(const struct sim_extent *extent, uint64_t at, size_t size)
{
    size_t skip, data;
    uint64_t bytes = 0;

    while (size > 0 && sim_extent_data(extent, at, size, &skip, &data)) {
        bytes += data;
        at += skip + data;
        size -= skip + data;
    }
    return bytes;
}

static void zero_bytes(const struct sim_backing *backing, uint64_t offset, size_t size)
{
    static const char zeros[4096];

    while (size > 0) {
        size_t piece = size < sizeof(zeros) ? size : sizeof(zeros);

        write_bytes(backing, offset, zeros, piece);
        offset += piece;
        size -= piece;
    }
}

/* Makes pages zero: punches a hole, or writes zeros if the system refuses. */
static void clear(const struct sim_backing *backing, uint64_t offset, uint64_t size)
{
    if (fallocate(backing->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                  (off_t)size) != 0) {
        zero_bytes(backing, offset, (size_t)size);
    }
}

void sim_extent_release(struct sim_extent *extent)
{
    struct sim_backing *backing = extent->backing;

    sim_known_forget(&extent->known);
    if (extent->range.size == 0) {
        return;
    }
    if (backing->isolated) {
        free_backing(backing);
    } else {
        if (extent->touched) {
            clear(backing, extent->range.start, extent->range.size);
        }
        sim_rangemap_remove(&backing->used, &extent->range);
    }
    extent->range.size = 0;
    extent->backing = NULL;
}

void sim_extent_zero(struct sim_extent *extent, uint64_t at, size_t size)
{
    uint64_t offset = extent->range.start + at, end = offset + size;
    uint64_t first_page = (offset + PAGE - 1) / PAGE * PAGE, last_page = end / PAGE * PAGE;

    if (!extent->touched) {
        return;
    }
    if (size < SPARSE_BYTES) {
        zero_bytes(extent->backing, offset, size);
        return;
    }
    zero_bytes(extent->backing, offset, (size_t)(first_page - offset));
    clear(extent->backing, first_page, last_page - first_page);
    zero_bytes(extent->backing, last_page, (size_t)(end - last_page));
}

static bool is_zero(const char *bytes, size_t size)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

void sim_extent_write(struct sim_extent *extent, uint64_t at, const void *src, size_t size)
{
    const char *in = src;

    while (size >= SPARSE_BYTES) {
        if (is_zero(in, SPARSE_BYTES)) {
            sim_extent_zero(extent, at, SPARSE_BYTES);
        } else {
            extent->touched = true;
            write_bytes(extent->backing, extent->range.start + at, in, SPARSE_BYTES);
        }
        at += SPARSE_BYTES;
        in += SPARSE_BYTES;
        size -= SPARSE_BYTES;
    }
    if (size > 0) {
        extent->touched = true;
        write_bytes(extent->backing, extent->range.start + at, in, size);
    }
}

void sim_extent_fill(struct sim_extent *extent, uint64_t at, uint32_t pattern, unsigned int width,
                     size_t size)
{
    static unsigned char block[4096]; /* not on a stack, which may be small */
    unsigned char unit[4];
    uint64_t offset = extent->range.start + at;
    size_t whole = size < sizeof(block) ? size : sizeof(block);

    memcpy(unit, &pattern, sizeof(unit)); /* little-endian: the low bytes come first */
    if ((width == 1 && unit[0] == 0) || (width == 2 && (pattern & 0xffff) == 0) ||
        (width == 4 && pattern == 0)) {
        sim_extent_zero(extent, at, size);
        return;
    }
    for (size_t i = 0; i < whole; i++) {
        block[i] = unit[i % width];
    }
    extent->touched = true;
    while (size > 0) {
        size_t piece = size < sizeof(block) ? size : sizeof(block);

        write_bytes(extent->backing, offset, (const char *)block, piece);
        offset += piece;
        size -= piece;
    }
}

/* Copies bytes of data through a buffer. */
static void copy_bytes(const struct sim_backing *dst, uint64_t to, const struct sim_backing *src,
                       uint64_t from, size_t size)
{
    static char buffer[16384]; /* not on a stack, which may be small */

    while (size > 0) {
        size_t piece = size < sizeof(buffer) ? size : sizeof(buffer);

        read_bytes(src, from, buffer, piece);
        write_bytes(dst, to, buffer, piece);
        from += piece;
        to += piece;
        size -= piece;
    }
}

void sim_extent_copy(struct sim_extent *dst, uint64_t dst_at, const struct sim_extent *src,
                     uint64_t src_at, size_t size)
{
    uint64_t from = src->range.start + src_at, end = from + size, start, stop;
    uint64_t to = dst->range.start + dst_at;

    if (!src->touched) {
        sim_extent_zero(dst, dst_at, size);
        return;
    }
    if (size < SPARSE_BYTES) {
        dst->touched = true;
        copy_bytes(dst->backing, to, src->backing, from, size);
        return;
    }
    while (from < end && next_data(src->backing, from, end, &start, &stop)) {
        sim_extent_zero(dst, to - dst->range.start, (size_t)(start - from));
        dst->touched = true;
        copy_bytes(dst->backing, to + (start - from), src->backing, start, (size_t)(stop - start));
        to += stop - from;
        from = stop;
    }
    sim_extent_zero(dst, to - dst->range.start, (size_t)(end - from));
}

/* An isolated file is the content followed by one page with the label. */
bool sim_extent_isolate(struct sim_extent *extent, const void *label, size_t label_size)
{
    struct sim_extent own = {.range = {.size = extent->range.size}};
    uint64_t size = extent->range.size;

    if (extent->backing->isolated) {
        return true;
    }
    own.backing = new_backing("spillway-sim-shared", size + PAGE, ISOLATED_WINDOWS);
    if (own.backing == NULL) {
        return false;
    }
    own.backing->isolated = true;
    write_bytes(own.backing, size, label, label_size);
    sim_extent_copy(&own, 0, extent, 0, (size_t)size);
    own.touched = true; /* another process may write to it from now on */
    sim_extent_release(extent);
    *extent = own;
    return true;
}

bool sim_extent_adopt(struct sim_extent *extent, int fd, void *ret_label, size_t label_size)
{
    struct sim_backing *backing;
    struct stat status;
    int own;

    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= (off_t)PAGE ||
        (size_t)status.st_size % PAGE != 0 ||
        pread(fd, ret_label, label_size, status.st_size - (off_t)PAGE) != (ssize_t)label_size) {
        return false;
    }
    own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
        return false;
    }
    backing = wrap_file(own, ISOLATED_WINDOWS);
    if (backing == NULL) {
        close(own);
        return false;
    }
    backing->isolated = true;
    *extent = (struct sim_extent){
        .range = {.start = 0, .size = (uint64_t)status.st_size - PAGE},
        .backing = backing,
        .touched = true,
    };
    return true;
}

int sim_extent_export(const struct sim_extent *extent)
{
    return fcntl(extent->backing->fd, F_DUPFD_CLOEXEC, 0);
}

bool sim_extent_is_fd(const struct sim_extent *extent, int fd)
{
    struct stat own, other;

    return extent->range.size != 0 && extent->backing->isolated &&
           fstat(extent->backing->fd, &own) == 0 && fstat(fd, &other) == 0 &&
           own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}
