#pragma once
/* log - the messages of a running role (master, agent, command line).  Library code does not log. */
enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

#define LOG_ROLE_MAX 160 /* what is longer is cut */
/* To fd (default 2) as "2026-01-02T03:04:05.678Z role: text"; control bytes are escaped. */
void log_setup(int fd, const char *role, enum log_level max);
/* Every line goes to this descriptor, too; -1: to none. */
void log_also(int fd);
void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
