/* Signatures, and what is found by them.

   A dictionary finds a signature by hashing its bytes, which for many arguments takes longer than reading them. So what
   was found last is also in a small table, where a few multiplications tell the place. */

#include "_launcher.h"

PyObject *signature_of(const Reading *r)
{
    return PyBytes_FromStringAndSize((const char *)r->parts, r->n_parts * (Py_ssize_t)sizeof(uint64_t));
}

static Recent *place_of(LaunchCache *c, const Reading *r)
{
    const uint64_t odd = 0x9E3779B97F4A7C15u;
    uint64_t sum = 0, factor = odd;
    for (int i = 0; i < r->n_parts; i++, factor += 2 * odd)
        sum += r->parts[i] * factor;
    return c->recent + (sum >> 40) % RECENT;
}

static void drop(Recent one)
{
    Py_XDECREF(one.table);
    Py_XDECREF(one.signature);
    Py_XDECREF(one.found);
    Py_XDECREF(one.entry);
}

void forget_recent(LaunchCache *c)
{
    Recent before[RECENT];
    LOCK(&c->mutex);
    memcpy(before, c->recent, sizeof before);
    memset(c->recent, 0, sizeof before);
    c->changes++;
    UNLOCK(&c->mutex);
    for (int i = 0; i < RECENT; i++)
        drop(before[i]);
}

int visit_recent(LaunchCache *c, visitproc visit, void *arg)
{
    for (int i = 0; i < RECENT; i++) {
        Py_VISIT(c->recent[i].table);
        Py_VISIT(c->recent[i].found);
        Py_VISIT(c->recent[i].entry);
    }
    return 0;
}

PyObject *found_in(LaunchCache *c, PyObject *table, const Reading *r, PyObject **entry)
{
    Recent *one = place_of(c, r);
    Py_ssize_t size = r->n_parts * (Py_ssize_t)sizeof(uint64_t);
    LOCK(&c->mutex);
    int same = one->table == table && one->size == size && memcmp(one->bytes, r->parts, (size_t)size) == 0;
    PyObject *found = same ? Py_NewRef(one->found) : NULL, *launch = NULL;
    if (same && entry != NULL)
        *entry = Py_NewRef(one->entry);
    uint64_t changes = c->changes;
    UNLOCK(&c->mutex);
    if (found != NULL)
        return found;
    PyObject *signature = signature_of(r);
    if (signature == NULL || (found = item_of(table, signature)) == NULL
        || (entry != NULL && (launch = item_of(c->entries, PyTuple_GetItem(found, LAUNCHED))) == NULL)) {
        Py_XDECREF(signature);
        Py_XDECREF(found);
        return NULL;
    }
    if (entry != NULL)
        *entry = Py_NewRef(launch);
    Recent other = {Py_NewRef(table), signature, Py_NewRef(found), launch, PyBytes_AsString(signature), size};
    LOCK(&c->mutex);
    if (c->changes == changes) { /* else the dictionary may have something else by now */
        Recent before = *one;
        *one = other;
        other = before;
    }
    UNLOCK(&c->mutex);
    drop(other);
    return found;
}
