#include "system/write.h"

#include "common/utf8.h"
#include "system/fd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void spw_write_flush(struct spw_writer *writer)
{
    if (!spw_fd_write(writer->fd, writer->buffer, writer->used)) {
        writer->failed = true;
    }
    writer->used = 0;
}

void spw_write(struct spw_writer *writer, const char *text)
{
    for (; *text != '\0'; text++) {
        if (writer->used == sizeof(writer->buffer)) {
            spw_write_flush(writer);
        }
        writer->buffer[writer->used++] = *text;
    }
}

void spw_write_number(struct spw_writer *writer, uint64_t number)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRIu64, number);
    spw_write(writer, text);
}

/* A JSON string. Bytes that are no UTF-8 (names of files may be anything) become U+FFFD. */
void spw_write_string(struct spw_writer *writer, const char *text)
{
    spw_write(writer, "\"");
    while (*text != '\0') {
        unsigned char byte = (unsigned char)*text;
        size_t length = spw_utf8_length(text);
        char piece[8] = "\\ufffd";

        if (byte == '"' || byte == '\\') {
            snprintf(piece, sizeof(piece), "\\%c", byte);
        } else if (length > 0 && spw_utf8_is_control(text, length)) {
            snprintf(piece, sizeof(piece), "\\u%04x", spw_utf8_code(text, length) & 0xFFFF);
        } else if (length > 0) {
            memcpy(piece, text, length);
            piece[length] = '\0';
        }
        spw_write(writer, piece);
        text += length > 0 ? length : 1;
    }
    spw_write(writer, "\"");
}

void spw_write_key(struct spw_writer *writer, const char *key)
{
    spw_write(writer, ", ");
    spw_write_string(writer, key);
    spw_write(writer, ": ");
}

void spw_write_figure(struct spw_writer *writer, const char *key, uint64_t number)
{
    spw_write_key(writer, key);
    spw_write_number(writer, number);
}

void spw_write_text(struct spw_writer *writer, const char *key, const char *text)
{
    spw_write_key(writer, key);
    spw_write_string(writer, text);
}
