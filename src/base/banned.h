#pragma once
/*
 * banned - functions that must not be called; force-included in every file.
 *
 * Use buf_* and snprintf for copies, str_to_* for numbers, clock_* for time,
 * rand_* and rng_* for randomness, sys/ for processes and net/ to resolve names
 * (a static glibc cannot do it).  The headers that declare the poisoned
 * names come first, because a declaration of a poisoned name is an error too.
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
