#pragma once
/*
 * expand - texts with placeholders that only a node can fill in.
 *
 * The environment of a job is the same for all nodes of a role but for a few words, and some of it lists every
 * node of the run.  So a strategy writes templates, the table of members goes to each node once, and
 * the node expands them.  A template is text with these placeholders:
 *
 *   {{                        a brace
 *   {rank} {index} {name}     of the node: in the run, in its role, "<role>-<index>" or as the table names it
 *   {process} {local}         of the process: its rank among those of all nodes, its number on the node
 *   {task}                    of the process: its number among those of its role
 *   {processes}               on the node
 *   {address} {address:RANK}  the node's address, and that of another; its name where none is known
 *   {port:5436}               the port of the node's role, or the number if it has none
 *   {process_port:5436}       the same and the process's number on the node: each has a port of its own
 *   {:port}                   {port} with a colon in front; nothing if it has none
 *   {attempt}                 of this start
 *   {interface} {output} {work} {hostfile} {machinefile} {metrics} {rsh} {tee}    the names and paths on this node
 *   {list:WHO|BETWEEN|ITEM}   ITEM, a template, for each node of the role WHO ("*": of all, "+": of
 *                             those that count for the finish) in the order of their ranks
 *   {each:WHO|BETWEEN|ITEM}   the same for each of their processes
 *
 * Everything else, also a closing brace, stands for itself; in an ITEM the closing brace ends it.
 */
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

/* The nodes of a role have the ranks first .. first+count-1. */
struct expand_role {
	const char *name;
	int first, count;
	int port;      /* 0: none */
	int processes; /* on each of its nodes; 0 counts as 1 */
	bool counted;
};

struct expand_members {
	const struct expand_role *roles; /* in the order of their ranks */
	size_t nroles;
	const char *const *addresses; /* per rank; NULL: not known */
	const char *const *names;     /* per rank; NULL: "<role>-<index>" */
	int n;
};

/* The node for which a template is expanded.  NULL or "": the node has no such file or interface. */
struct expand_here {
	const struct expand_members *members;
	int rank, attempt;
	int local; /* number of the process on the node */
	const char *interface, *output, *work, *hostfile, *machinefile, *metrics, *rsh, *tee;
};

/* The rank of a node's first process: the processes of all nodes with a lower rank count before it. */
int expand_first_process(const struct expand_members *m, int rank);

/* The longest variable that Linux takes: name, '=', value and NUL.  An exec with a longer one fails. */
#define EXPAND_MAX_VARIABLE (128 * 1024)
/* Most bytes of an expanded text: a list of all members can be long. */
#define EXPAND_MAX_TEXT (8 * 1024 * 1024)

enum expanded {
	EXPAND_OK,
	EXPAND_NONE, /* the node has no value for a placeholder: the variable is not set */
	EXPAND_LONG, /* a variable: expanded, but too long for an exec */
	EXPAND_BAD,  /* not a valid template, or too long for the buffer */
};
/* Appends the text to *out, which is valid only with EXPAND_OK.  Only EXPAND_BAD sets *err. */
enum expanded expand_text(const char *template, const struct expand_here *here, struct buf *out,
			  struct err *err);
/* The same for the value of a variable, which replaces the content of *out. */
enum expanded expand_variable(const char *name, const char *template,
			      const struct expand_here *here, struct buf *out, struct err *err);
/* Append a text so that expanding gives it back. */
void expand_quote(const char *text, struct buf *out);
/* Appended to the name of a variable that is EXPAND_LONG: NAME_FILE holds the path of the file with the value. */
#define EXPAND_FILE_SUFFIX "_FILE"
