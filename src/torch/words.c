#include "torch/words.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#include "system/safe_read.h"

enum {
    ERROR_BYTES = 128,      /* of a c10::Error with the newer form of std::string */
    OLDER_ERROR_BYTES = 80, /* of a c10::Error with the older form */
    TEXT_MOST = 1024,
    SIZE_TEXT = 32,
};

/* A text with figures is longer than 15 characters, so it is never stored inside the string
 * object. */
struct string {
    char *text;
    size_t length, capacity; /* only in the newer form of std::string */
};

/* Precedes the text in the older form of std::string. */
struct head {
    size_t length, capacity;
    int others; /* number of further strings that share the text */
};

_Thread_local struct spw_torch_said spw_torch_said __attribute__((tls_model("initial-exec")));

/* Writes a size as PyTorch does. */
static void size_text(uint64_t bytes, char text[SIZE_TEXT])
{
    static const struct {
        const char *name;
        unsigned bits;
    } units[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (bytes > UINT64_C(1) << units[i].bits) {
            (void)snprintf(text, SIZE_TEXT, "%.2f %s",
                           (double)bytes / (double)(UINT64_C(1) << units[i].bits), units[i].name);
            return;
        }
    }
    (void)snprintf(text, SIZE_TEXT, "%" PRIu64 " bytes", bytes);
}

/* Reads the string object at `place`. The words there may not be a string, so the memory that they
 * point to is read safely. */
static bool read_string(const void *place, bool is_older, struct string *ret_string)
{
    struct head head;

    if (!is_older) {
        memcpy(ret_string, place, sizeof(*ret_string));
        return true;
    }
    memcpy(&ret_string->text, place, sizeof(ret_string->text));
    if (!spw_safe_read((uintptr_t)ret_string->text - sizeof(head), &head, sizeof(head))) {
        return false;
    }
    ret_string->length = head.length;
    ret_string->capacity = head.capacity;
    return true;
}

/* Reads the text of an out-of-memory error. Returns false if the words at `place` are not such a
 * string. */
static bool read_error(const void *place, bool is_older, char text[TEXT_MOST])
{
    static const char begin[] = "CUDA out of memory.";
    struct string string;

    return read_string(place, is_older, &string) && string.length > sizeof(begin) &&
           string.length < TEXT_MOST && string.capacity >= string.length &&
           spw_safe_read((uintptr_t)string.text, text, string.length + 1) &&
           memcmp(text, begin, sizeof(begin) - 1) == 0 && strlen(text) == string.length;
}

/* Writes the text with the figures of both parts. Returns false if the text is not as expected. */
static bool reword(const char *text, char *ret_text, size_t capacity)
{
    static const char before[] = "Of the allocated memory ",
                      behind[] = " is allocated by PyTorch, ";
    static const char and[] = "and ", left[] = " is reserved by PyTorch but unallocated.";
    const struct spw_torch_said *said = &spw_torch_said;
    const char *first = strstr(text, before);
    const char *first_end = first != NULL ? strstr(first, behind) : NULL;
    const char *second_end = first_end != NULL ? strstr(first_end, left) : NULL;
    const char *second = NULL;
    char allocated[SIZE_TEXT], rest[SIZE_TEXT];

    if (second_end == NULL) {
        return false;
    }
    for (const char *at = first_end; (at = strstr(at, and)) != NULL && at < second_end; at++) {
        second = at + strlen(and);
    }
    if (second == NULL) {
        return false;
    }
    size_text(said->allocated, allocated);
    size_text(said->reserved > said->allocated ? said->reserved - said->allocated : 0, rest);
    first += strlen(before);
    return (size_t)snprintf(ret_text, capacity, "%.*s%s%.*s%s%s", (int)(first - text), text,
                            allocated, (int)(second - first_end), first_end, rest,
                            second_end) < capacity;
}

static void replace(struct string *string, const char *text)
{
    const struct spw_torch_library *library = spw_torch_said.library;
    size_t length = strlen(text);
    char *memory = library->new_memory(length + 1);

    memcpy(memory, text, length + 1);
    library->delete_memory(string->text);
    *string = (struct string){memory, length, length};
}

/* Replaces the text. The last string that shares a text frees it. */
static void replace_older(char **place, const char *text)
{
    const struct spw_torch_library *library = spw_torch_said.library;
    struct head *before = (struct head *)*place - 1;
    size_t length = strlen(text);
    struct head *head = library->new_memory(sizeof(*head) + length + 1);

    *head = (struct head){.length = length, .capacity = length};
    memcpy(head + 1, text, length + 1);
    *place = (char *)(head + 1);
    if (__atomic_fetch_sub(&before->others, 1, __ATOMIC_ACQ_REL) <= 0) {
        library->delete_memory(before);
    }
}

static __attribute__((noinline)) void reword_at(void *place, const char *text)
{
    char reworded[TEXT_MOST];

    if (!reword(text, reworded, sizeof(reworded))) {
        return;
    }
    if (spw_torch_said.library->has_older_strings) {
        replace_older(place, reworded);
    } else {
        replace(place, reworded);
    }
}

/* Searches a thrown object for the texts. */
static __attribute__((noinline)) void correct(char *object)
{
    bool is_older = spw_torch_said.library->has_older_strings;
    size_t string_bytes = is_older ? sizeof(char *) : sizeof(struct string);
    size_t bytes = is_older ? OLDER_ERROR_BYTES : ERROR_BYTES;
    char text[TEXT_MOST];

    for (size_t i = 0; i + string_bytes <= bytes; i += sizeof(void *)) {
        if (read_error(object + i, is_older, text)) {
            reword_at(object + i, text);
        }
    }
}

/* The personality function of the functions that errors pass through. The unwinder calls it for an
 * exception. It corrects the exception and lets it continue. */
static _Unwind_Reason_Code look(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                struct _Unwind_Exception *exception,
                                struct _Unwind_Context *context)
{
    static const char cxx[8] = "GNUCC++";
    _Unwind_Exception_Class expected = 0;

    for (size_t i = 0; i < sizeof(cxx); i++) {
        expected = expected << 8 | (unsigned char)cxx[i];
    }
    if (version == 1 && (actions & _UA_CLEANUP_PHASE) != 0 && class == expected &&
        spw_torch_said.library != NULL) {
        correct((char *)(exception + 1));
    }
    return _URC_CONTINUE_UNWIND;
}

/* The unwinder reads this. */
extern const _Unwind_Personality_Fn spw_torch_words_place;
__attribute__((used)) const _Unwind_Personality_Fn spw_torch_words_place = look;
