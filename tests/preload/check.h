/* Macros for calls in a test program: print the result, or require success. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

/* Prints "call: RESULT", where `name` turns the result into a string. */
#define SHOW(name, call) printf("%s: %s\n", #call, name(call))

/* Ends the program when the call does not answer 0. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        int must_result_ = (int)(call);                                                            \
        if (must_result_ != 0) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %d\n", __FILE__, __LINE__, #call, must_result_);           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Ends the program when the condition does not hold. */
#define HOLD(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
