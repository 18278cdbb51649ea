#include "torch/words.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

enum {
    ERROR_BYTES = 128, /* of c10::Error, in each version */
    TEXT_MOST = 4096,
    SIZE_TEXT = 32,
};

/* The newer form of std::string. */
struct string {
    char *text;
    size_t length;
    union {
        char small[16];
        size_t capacity;
    };
};

_Thread_local struct spw_torch_said spw_torch_said __attribute__((tls_model("initial-exec")));

/* A size as PyTorch writes it. */
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

static bool is_error(const struct string *string, const void *end)
{
    static const char begin[] = "CUDA out of memory.";

    return (const void *)(string + 1) <= end && string->length > sizeof(begin) &&
           string->length < TEXT_MOST && string->capacity >= string->length &&
           string->text != NULL && (uintptr_t)string->text > TEXT_MOST &&
           memcmp(string->text, begin, sizeof(begin) - 1) == 0 &&
           string->text[string->length] == '\0';
}

/* Writes the text with the figures of both parts. False when the text is not as expected. */
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
    string->text = memory;
    string->length = length;
    string->capacity = length;
}

/* Looks for the texts in a thrown object. They are too long to be stored inside a string object (15
 * characters). */
static __attribute__((noinline)) void correct(char *object)
{
    const char *end = object + ERROR_BYTES;
    char text[TEXT_MOST / 4];

    for (char *at = object; at < end; at += sizeof(void *)) {
        struct string *string = (struct string *)at;

        if (is_error(string, end) && reword(string->text, text, sizeof(text))) {
            replace(string, text);
        }
    }
}

/* The personality of the functions that errors pass through. It is called when an exception unwinds
 * them, corrects the exception, and lets it go on. */
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

/* Read by the unwinder. */
extern const _Unwind_Personality_Fn spw_torch_words_place;
__attribute__((used)) const _Unwind_Personality_Fn spw_torch_words_place = look;
