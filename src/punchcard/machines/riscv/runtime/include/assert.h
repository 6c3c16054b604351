/* A failed assertion says where it stands, and aborts. No guard: NDEBUG counts where the file is included. */

#undef assert
_Noreturn void __assertion_failed(const char *text, const char *file, int line);
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __assertion_failed(#condition, __FILE__, __LINE__))
#endif
#ifndef __cplusplus
#undef static_assert
#define static_assert _Static_assert
#endif
