/* malloc and free: one list of blocks in the order of their addresses; the first free block that is large enough is taken. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "system.h"

#define ALIGNMENT 16

typedef struct block {
    struct block *next;
    size_t size; /* of what follows the header */
    size_t free;
    size_t padding;
} Block;

static Block *first, *last;
static char *heap_end;

/* A block at the end of the heap, with room for `size` bytes; no block where the machine has no room left. */
static Block *grow(size_t size)
{
    if (heap_end == NULL)
        heap_end = (char *)((__system_call(0, 0, 0, BRK) + ALIGNMENT - 1) & -ALIGNMENT);
    char *wanted = heap_end + sizeof(Block) + size;
    if (wanted < heap_end || (char *)__system_call((long)wanted, 0, 0, BRK) != wanted)
        return NULL;
    Block *block = (Block *)(void *)heap_end;
    heap_end = wanted;
    *block = (Block){NULL, size, 0, 0};
    if (last == NULL)
        first = block;
    else
        last->next = block;
    last = block;
    return block;
}

/* Leave `size` bytes to a block, and make a free block of the rest, if that is worth a header. */
static void split(Block *block, size_t size)
{
    if (block->size < size + sizeof(Block) + ALIGNMENT)
        return;
    Block *rest = (Block *)(void *)((char *)(block + 1) + size);
    *rest = (Block){block->next, block->size - size - sizeof(Block), 1, 0};
    block->next = rest;
    block->size = size;
    if (last == block)
        last = rest;
}

/* Free blocks that lie side by side become one. */
static void join(Block *block)
{
    while (block->next != NULL && block->next->free) {
        Block *gone = block->next;
        block->size += sizeof(Block) + gone->size;
        block->next = gone->next;
        if (last == gone)
            last = block;
    }
}

void *malloc(size_t size)
{
    if (size > PTRDIFF_MAX)
        return NULL;
    size = size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    for (Block *block = first; block != NULL; block = block->next) {
        if (!block->free)
            continue;
        join(block);
        if (block->size >= size) {
            split(block, size);
            block->free = 0;
            return block + 1;
        }
    }
    Block *block = grow(size);
    return block == NULL ? NULL : block + 1;
}

void free(void *memory)
{
    if (memory == NULL)
        return;
    Block *block = (Block *)memory - 1;
    block->free = 1;
    join(block);
}

void *calloc(size_t count, size_t size)
{
    if (size != 0 && count > PTRDIFF_MAX / size)
        return NULL;
    void *memory = malloc(count * size);
    return memory == NULL ? NULL : memset(memory, 0, count * size);
}

void *realloc(void *memory, size_t size)
{
    if (memory == NULL)
        return malloc(size);
    Block *block = (Block *)memory - 1;
    if (block->size >= size)
        return memory;
    void *larger = malloc(size);
    if (larger == NULL)
        return NULL;
    memcpy(larger, memory, block->size);
    free(memory);
    return larger;
}
