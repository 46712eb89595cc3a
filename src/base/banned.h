#pragma once
/*
 * banned - force-included everywhere: what must not be called.
 *
 * Bounded copies are buf_* and snprintf; numbers are str_to_*; time is clock_*;
 * randomness is rand_* and rng_*; processes are sys/'s; names are resolved by
 * net/ (a static glibc cannot do it).  The headers that declare the poisoned
 * names come first, because poison also bites declarations.
 */
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#undef alloca
#undef sprintf
#undef vsprintf
#undef strncpy
#undef strncat
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok
#pragma GCC poison atoi atol atoll gmtime localtime ctime asctime srand
#pragma GCC poison system popen alloca gets
#pragma GCC poison getpwuid getpwnam getaddrinfo gethostbyname
/* Third-party headers have parameters of this name: ban the call, not the word. */
#define rand() rand_is_banned_use_rand_u64_or_rng_next
