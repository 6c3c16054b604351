/* Integers of known sizes: the compiler's own file. gcc's stdint.h would ask for that of a C library; clang's does not. */

#if __has_include(<stdint-gcc.h>)
#include <stdint-gcc.h>
#else
#include_next <stdint.h>
#endif
