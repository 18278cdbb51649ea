/* A folder of a test, and the files in it. Included once by a test program, which makes the folder
 * with mkdtemp. One thread. */
#pragma once

#include <stdio.h>

#include "child.h"

static char folder[] = "/tmp/spillway-test-XXXXXX";

/* The path of a file there; valid for three more calls. */
static const char *in_folder(const char *name)
{
    static char path[4][128];
    static unsigned turn;

    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", folder, name);
    return path[turn];
}

static inline void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}
