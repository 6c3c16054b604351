/* Memory, numbers and the end, of the small library. */

#ifndef PUNCHCARD_STDLIB_H
#define PUNCHCARD_STDLIB_H

#include <stddef.h>

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 0x7fffffff

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void free(void *block);

_Noreturn void exit(int status);
_Noreturn void _Exit(int status);
_Noreturn void abort(void);
int atexit(void (*function)(void));
char *getenv(const char *name);

int abs(int number);
long labs(long number);
int atoi(const char *text);
long atol(const char *text);
long strtol(const char *text, char **end, int base);
unsigned long strtoul(const char *text, char **end, int base);
double atof(const char *text);
double strtod(const char *text, char **end);
float strtof(const char *text, char **end);

int rand(void);
void srand(unsigned seed);

void qsort(void *items, size_t count, size_t size, int (*compare)(const void *, const void *));
void *bsearch(const void *key, const void *items, size_t count, size_t size, int (*compare)(const void *, const void *));

#endif
