#!/usr/bin/env python3
"""Breaks the pool in one place; a stress test must notice it.

    mutate.py NAME SOURCE_DIR OUTPUT    writes the broken file
    mutate.py --list                    prints a line `NAME FILE` for each

A mutant is a file and texts that occur in it exactly once, with their replacements. White space
in a text matches any white space.
"""
import pathlib
import re
import sys

MUTANTS = {
    # Reuse before the fence: every fence is taken to be complete.
    'fence_not_awaited': ('order/stream_queue.c', [
        ('queues->vm->ops->query(queues->vm, oldest(queue)->fence) == SPW_OK', 'true')]),
    # A fence that was recorded before a free is taken to cover it.
    'fence_too_old': ('order/stream_queue.c', [
        ('queue->number == SPW_STREAM_QUEUE_IDLE || queue->fenced == queue->seq',
         'queue->number == SPW_STREAM_QUEUE_IDLE || queue->count > 0')]),
    # A host wait that was refused counts as one that succeeded.
    'wait_not_waited': ('space/pending.c', [
        ('spw_pool_stream_queue_waited(space->queues, queue, record, err == SPW_OK)',
         'spw_pool_stream_queue_waited(space->queues, queue, record, true)')]),
    # Unmapping before the work that uses the granule is complete.
    'unmap_too_early': ('memory/backing.c', [
        ('!is_kept(backing, index) &&\n'
         '           spw_pool_stream_queue_passed(backing->queues, granule->queue, granule->seq)',
         '!is_kept(backing, index)')]),
    # Of two streams that freed in one granule only the later one is remembered.
    'granule_of_one_queue': ('memory/backing.c', [
        ('granule->queue == SPW_STREAM_QUEUE_IDLE ||', 'true ||')]),
    # Both are remembered, but by a number that a wait begun before the free may cover.
    'granule_of_old_number': ('memory/backing.c', [
        ('spw_pool_stream_queue_stamp(backing->queues, all);',
         'if (all->fenced == all->seq) {\n'
         '    spw_pool_stream_queue_stamp(backing->queues, all);\n'
         '}\n')]),
    # A wait of the program is taken to cover what was freed while it waited.
    'wait_covers_too_much': ('order/stream_queue.c', [
        ('clock < queue->seq ? clock : queue->seq', 'queue->seq')]),
    # The wrong stream is made to wait.
    'wait_on_wrong_stream': ('alloc/alloc.c', [
        ('wait_stream(vm, attempt->request->stream,',
         'wait_stream(vm, queue->number == SPW_STREAM_QUEUE_ALL || queue->retired\n'
         ' ? attempt->request->stream'
         '                                       : &queue->stream,')]),
    # No stream is made to wait at all.
    'no_stream_wait': ('alloc/alloc.c', [
        ('vm->ops->wait_stream(vm, attempt->request->stream,'
         ' spw_pool_stream_queue_newest(queue)) != SPW_OK',
         'vm == NULL')]),
    # The order of memory freed on a stream is lost when the stream is destroyed.
    'fence_lost_at_destroy': ('alloc/free.c', [
        ('(void)spw_pool_stream_queue_fence(&pool->queues, queue);\n'
         '        spw_pool_stream_queue_retire',
         'queue->fenced = queue->done = queue->seq;\n        spw_pool_stream_queue_retire')]),
    # A stream's handle is used after the stream is destroyed.
    'handle_after_destroy': ('order/stream_queue.c', [
        ('queue->number == SPW_STREAM_QUEUE_ALL || queue->retired',
         'queue->number == SPW_STREAM_QUEUE_ALL')]),
    # Streams are identified by their handles, which are reused.
    'stream_by_handle': ('order/stream_queue.c', [
        ('    struct spw_stream_queue *queue = spw_pool_stream_queue_known(queues, stream->id);\n',
         '    struct spw_stream_queue *queue = NULL;\n\n'
         '    for (uint32_t i = SPW_STREAM_QUEUE_FIRST_STREAM; i < queues->count; i++) {\n'
         '        if (queues->by_number[i]->stream.handle == stream->handle) {\n'
         '            queue = queues->by_number[i];\n'
         '        }\n'
         '    }\n')]),
    # A queue is handed to another stream while work is pending on it.
    'queue_vacated_early': ('order/stream_queue.c', [
        ('queue->count == 0 && queue->done >= queue->seq && queue->extents.oldest == NULL &&\n'
         '           queue->users == 0',
         'true')]),
    # Memory freed by cuMemFree gets the order of some stream.
    'free_in_some_order': ('alloc/free.c', [
        ('queue = spw_pool_stream_queue_all(&pool->queues);\n    }\n',
         'queue = pool->queues.by_number[pool->queues.count - 1];\n    }\n')]),
    # cuMemAlloc reuses memory freed by cuMemFree at once.
    'alloc_without_order': ('alloc/alloc.c', [
        ('spw_pool_space_best(space, attempt->heap, attempt->bytes, attempt->queue)',
         'spw_pool_space_best(space, attempt->heap, attempt->bytes,\n'
         '        attempt->queue != NULL ? attempt->queue\n'
         '                              : spw_pool_stream_queue_all(space->queues))')]),
    # The free pieces of a claim that was given back have lost their order.
    'claim_without_order': ('space/space.c', [('claim->seq = queue->seq;', 'claim->seq = 0;')]),
    # Two frees that merge are as old as the older one.
    'join_keeps_older': ('space/space.c', [
        ('other->seq > extent->seq', 'other->seq < extent->seq')]),
    # Memory of different queues merges.
    'join_any_queue': ('space/space.c', [('other->queue == extent->queue) {', 'true) {')]),
}


def main():
    if sys.argv[1] == '--list':
        for name, (file, _) in MUTANTS.items():
            print(name, file)
        return
    name, folder, output = sys.argv[1:]
    file, edits = MUTANTS[name]
    text = (pathlib.Path(folder) / file).read_text()
    for old, new in edits:
        found = list(re.finditer(r'\s+'.join(map(re.escape, old.split())), text))
        if len(found) != 1:
            sys.exit(f'mutate.py: {name}: {old!r} is {len(found)} times in {file}')
        text = text[:found[0].start()] + new + text[found[0].end():]
    pathlib.Path(output).write_text(text)


main()
