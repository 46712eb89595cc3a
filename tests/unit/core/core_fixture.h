#pragma once
/* Shared by the tests of the core: a run made from the text of a job, and short functions for its events. */
#include "unit.h"

#include "base/arena.h"
#include "core/core.h"
#include "spec/job.h"

struct fixture {
	struct arena *a;
	struct job job;
	struct plan plan;
	struct core_run *r;
	struct effects fx;
	int64_t now;
};

extern const char *const three_workers;
extern const char *const pserver;

struct fixture *run_open(const char *toml);
void run_close(struct fixture *f);
/* A hello that names no incarnation is of the one that its node has now. */
void run_give(struct fixture *f, struct event ev);
int effects_count(const struct fixture *f, enum effect_kind kind);
bool effects_have(const struct fixture *f, enum effect_kind kind, int index);
void resource_answer(struct fixture *f, int index, enum outcome outcome, enum err_kind err);
void node_say(struct fixture *f, int rank, enum event_kind kind);
void run_create_all(struct fixture *f);
void run_make_ready(struct fixture *f);
void node_exit(struct fixture *f, int rank, int code, int signo);
void run_clean_up(struct fixture *f);
void run_exit_all(struct fixture *f);
