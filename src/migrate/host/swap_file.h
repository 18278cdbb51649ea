/* The file to which device memory is swapped out while the program is paused.
 *
 * The file has no name, so that it is gone however the process ends. Where the file system allows,
 * it is written and read past the page cache: the content is used once, and the cache would take
 * host memory, which is short. The hash of content that is
 * read back is compared with its hash when it was written. Errors are those of errno. No locking:
 * one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPW_SWAP_BUFFER_BYTES = 4 << 20 };

struct spw_swap_file {
    int fd;
    uint64_t end;          /* bytes written */
    unsigned char *buffer; /* SPW_SWAP_BUFFER_BYTES, for writing and reading */
    void *allocation;      /* what was allocated for the buffer */
    bool keeps_buffer;     /* a failed copy may still use the buffer, so it is never freed */
    bool direct;           /* past the page cache */
};

/* Creates the file in a folder. Returns 0, or an error; after an error nothing is open. */
int spw_migrate_swap_file_open(const char *folder, struct spw_swap_file *ret_file);

/* Closes the file, and so removes its content. */
void spw_migrate_swap_file_close(struct spw_swap_file *file);

/* Reserves room on the disk for `bytes` more bytes, if possible, because writes are faster then. */
void spw_migrate_swap_file_reserve(struct spw_swap_file *file, uint64_t bytes);

/* Appends the first `bytes` bytes of the buffer, and continues *hash with them. 0 or an error. */
int spw_migrate_swap_file_append(struct spw_swap_file *file, size_t bytes, uint64_t *hash);

/* Cuts the file to its first `end` bytes. */
void spw_migrate_swap_file_cut(struct spw_swap_file *file, uint64_t end);

/* Reads `bytes` bytes at `offset` into the buffer, and continues *hash with them. 0 or an error;
 * EIO when the file ends earlier. */
int spw_migrate_swap_file_read(struct spw_swap_file *file, uint64_t offset, size_t bytes,
                               uint64_t *hash);
