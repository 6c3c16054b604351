/* Input and output of the small library: characters, lines, and printf without floating point. */

#ifndef PUNCHCARD_STDIO_H
#define PUNCHCARD_STDIO_H

#include <stdarg.h>
#include <stddef.h>

#define EOF (-1)

typedef struct punchcard_file FILE;
extern FILE *const stdin, *const stdout, *const stderr;

int putchar(int c);
int puts(const char *text);
int putc(int c, FILE *file);
int fputc(int c, FILE *file);
int fputs(const char *text, FILE *file);
size_t fwrite(const void *items, size_t size, size_t count, FILE *file);
int fflush(FILE *file);

int getchar(void);
int getc(FILE *file);
int fgetc(FILE *file);
int ungetc(int c, FILE *file);
char *fgets(char *text, int size, FILE *file);
size_t fread(void *items, size_t size, size_t count, FILE *file);

/* %d %i %u %x %X %o %c %s %p %%, flags - + space 0 #, width, precision, sizes hh h l ll z t j. */
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fprintf(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
int sprintf(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int snprintf(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int vprintf(const char *format, va_list arguments);
int vfprintf(FILE *file, const char *format, va_list arguments);
int vsnprintf(char *text, size_t size, const char *format, va_list arguments);

#endif
