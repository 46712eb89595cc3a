#pragma once
/* list - intrusive, circular, doubly linked. */
#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next, *prev;
};

#define list_item(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define list_each(pos, head) for ((pos) = (head)->next; (pos) != (head); (pos) = (pos)->next)
#define list_each_safe(pos, tmp, head)                                                             \
	for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head);                           \
	     (pos) = (tmp), (tmp) = (pos)->next)

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}
static inline bool list_empty(const struct list *l)
{
	return l->next == l;
}
static inline void list_append(struct list *head, struct list *item)
{
	item->prev = head->prev;
	item->next = head;
	head->prev->next = item;
	head->prev = item;
}
/* Safe to call twice. */
static inline void list_remove(struct list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	list_init(item);
}
