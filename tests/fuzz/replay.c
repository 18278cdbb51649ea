/* Runs a fuzz target over the inputs of a corpus file, without libFuzzer.
 *
 * A corpus file has an input per line, in printable characters: a backslash begins \xNN, a byte, or
 * \\, a backslash; one at the end of a line joins it with the next. Lines that begin with # are
 * comments. fuzz.py writes such files. */
#include "fuzz.h"

#include <string.h>

/* The end of a line without its line break. */
static size_t chomp(const char *line, size_t length)
{
    return length > 0 && line[length - 1] == '\n' ? length - 1 : length;
}

static int hex_digit(char digit)
{
    const char *const digits = "0123456789abcdef";
    const char *at = digit != '\0' ? strchr(digits, digit) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

/* Appends the bytes of a line to `data`; true when the next line belongs to it. */
static int decode(const char *line, size_t length, uint8_t *data, size_t *size)
{
    for (size_t i = 0; i < length; i++) {
        if (line[i] != '\\') {
            data[(*size)++] = (uint8_t)line[i];
        } else if (i + 1 == length) {
            return 1;
        } else if (i + 3 < length && line[i + 1] == 'x') {
            data[(*size)++] = (uint8_t)(hex_digit(line[i + 2]) << 4 | hex_digit(line[i + 3]));
            i += 3;
        } else {
            data[(*size)++] = (uint8_t)line[++i];
        }
    }
    return 0;
}

/* An input of exactly its size, so that a reader that goes beyond it is seen. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);

    FUZZ_REQUIRE(exact != NULL);
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    uint8_t *data = malloc(1 << 20);
    char *line = NULL;
    size_t capacity = 0;
    size_t size = 0;
    ssize_t length;
    int inputs = 0;

    FUZZ_REQUIRE(file != NULL && data != NULL);
    while ((length = getline(&line, &capacity, file)) >= 0) {
        if (line[0] == '#' && size == 0) {
            continue;
        }
        if (!decode(line, chomp(line, (size_t)length), data, &size)) {
            run(data, size);
            inputs++;
            size = 0;
        }
    }
    printf("%d inputs\n", inputs);
    free(line);
    free(data);
    fclose(file);
    return inputs > 0 ? 0 : 1;
}
