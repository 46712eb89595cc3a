#pragma once
/*
 * vec - a typed growing array.
 *
 *	VEC(struct node) nodes = {0};
 *	*vec_push(&nodes) = (struct node){...};
 *	for (size_t i = 0; i < nodes.n; i++) use(&nodes.v[i]);
 *	vec_release(&nodes);
 */
#include <stddef.h>

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *v;                                                                           \
		size_t n, cap;                                                                     \
	}

void *vec_grow_(void *v, size_t *cap, size_t need, size_t size);

/* A pointer to a new, zeroed last element; valid until the next push. */
#define vec_push(vec)                                                                              \
	({                                                                                         \
		__typeof__(vec) v_ = (vec);                                                        \
		if (v_->n == v_->cap)                                                              \
			v_->v = vec_grow_(v_->v, &v_->cap, v_->n + 1, sizeof(*v_->v));             \
		memset(&v_->v[v_->n], 0, sizeof(*v_->v));                                          \
		&v_->v[v_->n++];                                                                   \
	})
#define vec_release(vec)                                                                           \
	do {                                                                                       \
		free((vec)->v);                                                                    \
		(vec)->v = NULL;                                                                   \
		(vec)->n = (vec)->cap = 0;                                                         \
	} while (0)
