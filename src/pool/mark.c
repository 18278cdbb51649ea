#include "pool/mark.h"

#include "pool/state.h"

enum spw_err spw_pool_mark(struct spw_pool *pool, const struct spw_stream *stream, void **ret_mark)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL};
    enum spw_err err;

    spw_lock(&pool->lock);
    err = pool->ops->fence(pool->vm, stream != NULL ? stream : &all, ret_mark);
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_passed(struct spw_pool *pool, void *mark)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = pool->ops->query(pool->vm, mark);
    spw_unlock(&pool->lock);
    return err;
}

void spw_pool_unmark(struct spw_pool *pool, void *mark)
{
    spw_lock(&pool->lock);
    pool->ops->drop(pool->vm, mark);
    spw_unlock(&pool->lock);
}
