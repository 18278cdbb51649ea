/* The Python companion: a file of Python that applies the rules about modules (action recompute) in
 * a program with PyTorch, or marks the forward passes of modules in the recording
 * (SPILLWAY_RECORD_MODULES). It does not know devices and memory.
 *
 *   companion   finds the file, and runs it when PyTorch is imported
 *   python      the functions of CPython that this needs
 *
 * CPython imports an extension module by looking up its first function with dlsym. The look-up of
 * PyTorch's extension module is therefore the moment at which the companion enters. The object
 * exports dlsym, so it sees the look-up in every interpreter, whatever the flags of the interpreter
 * and the files of the user are. Nothing happens in a process without such a look-up, or without
 * one of these two tasks.
 *
 * The file is python/recompute.py beside the object, or spillway/python/recompute.py in an
 * installation. Its path is absolute. No environment variable, folder of the program or setting of
 * the interpreter has an influence on it. */
#pragma once

#include <stdbool.h>

/* Returns true if `name` is the first function of PyTorch's extension module. Other packages may
 * have a module of that name. */
static inline bool spw_companion_is_cue(const char *name)
{
    const char *cue = "PyInit__C";

    while (*cue != '\0' && *cue == *name) {
        cue++;
        name++;
    }
    return *cue == '\0' && *name == '\0';
}

/* Runs the companion if the calling thread runs Python, and if one of these is true: the policy has
 * rules about modules for this process, or the passes of modules are recorded. If something fails,
 * one line says so, and the program runs without those rules or marks. Locking: takes none; the
 * caller holds the interpreter's lock and no other. */
void spw_companion_enter(void);
