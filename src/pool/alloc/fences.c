#include "pool/fences.h"

#include "pool/alloc/state.h"

enum spw_err spw_pool_fence_record(struct spw_pool *pool, const struct spw_stream *stream,
                                   void **ret_fence)
{
    const struct spw_stream all = {.id = SPW_STREAM_ALL};
    enum spw_err err;

    spw_lock(&pool->lock);
    err = pool->backing.vm->ops->fence(pool->backing.vm, stream != NULL ? stream : &all, ret_fence);
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_fence_query(struct spw_pool *pool, void *fence)
{
    enum spw_err err;

    spw_lock(&pool->lock);
    err = pool->backing.vm->ops->query(pool->backing.vm, fence);
    spw_unlock(&pool->lock);
    return err;
}

enum spw_err spw_pool_fence_wait(struct spw_pool *pool, void *fence)
{
    return pool->backing.vm->ops->wait_host(pool->backing.vm, fence);
}

void spw_pool_fence_drop(struct spw_pool *pool, void *fence)
{
    spw_lock(&pool->lock);
    pool->backing.vm->ops->drop(pool->backing.vm, fence);
    spw_unlock(&pool->lock);
}
