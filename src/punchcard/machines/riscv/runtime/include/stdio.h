/* Input and output of the small library: characters, lines, printf and scanf. */

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
int feof(FILE *file);
int ferror(FILE *file);
char *fgets(char *text, int size, FILE *file);
size_t fread(void *items, size_t size, size_t count, FILE *file);

/* %d %i %u %x %X %o %c %s %p %n %a %e %f %g %%, flags - + space 0 #, width, precision, sizes hh h l ll z t j; no long double. */
int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fprintf(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
int sprintf(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int snprintf(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int vprintf(const char *format, va_list arguments);
int vfprintf(FILE *file, const char *format, va_list arguments);
int vsprintf(char *text, const char *format, va_list arguments);
int vsnprintf(char *text, size_t size, const char *format, va_list arguments);

/* %d %i %u %x %o %c %s %[ %p %n %a %e %f %g %%, *, width, sizes as above; real numbers are decimal. */
int scanf(const char *format, ...) __attribute__((format(scanf, 1, 2)));
int fscanf(FILE *file, const char *format, ...) __attribute__((format(scanf, 2, 3)));
int sscanf(const char *text, const char *format, ...) __attribute__((format(scanf, 2, 3)));
int vscanf(const char *format, va_list arguments);
int vfscanf(FILE *file, const char *format, va_list arguments);
int vsscanf(const char *text, const char *format, va_list arguments);

#endif
