#pragma once
/*
 * answer - what came back: a tree, bytes, or an error with code, message and request id.
 */
struct aws_answer;
struct aws_call;
struct aws_fault;
struct err;
struct http_answer;
struct http_client;

/* 0: a success.  -1: an error that AWS told, or a body that cannot be read; *ret_fault says whether to try again. */
int aws_answer_read(struct aws_answer *ret, const struct aws_call *c, const struct http_answer *got,
		    const struct http_client *client, struct aws_fault *ret_fault, struct err *err);
