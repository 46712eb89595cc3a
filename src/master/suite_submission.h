#pragma once
/*
 * suite_submission - what was submitted as a suite, secrets included: a file beside it, until every run has succeeded
 * (upkeep/suite_requests.h).  Its runs have the credentials that are in it, so who resumes it gives new ones.
 */
#define SUITE_REQUEST_FILE "request.json" /* in the directory of the suite */

struct buf;
struct doc;
struct err;
struct live_suite;

/* Every variant has a submission, and all of these are tables with a job. */
int suite_submission_check(const struct live_suite *ls, struct err *err);
/* On failure the suite has none. */
int suite_submission_load(struct live_suite *ls, struct err *err);
int suite_submission_save(const struct live_suite *ls, struct err *err);
/* The engines that it has credentials for: {"engines":[{"name", "options"}]}, the options for resolver.credentials. */
void suite_engines_to_json(const struct live_suite *ls, struct buf *out);
/* Those that came, by name of the engine, replace those that it has; NULL: none came. */
int suite_credentials_renew(struct live_suite *ls, const struct doc *by_engine, struct err *err);
