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

static void forget(Recent *one)
{
    Recent before = *one;
    *one = (Recent){NULL, NULL, NULL, NULL, 0};
    Py_XDECREF(before.table);
    Py_XDECREF(before.signature);
    Py_XDECREF(before.found);
}

void forget_recent(LaunchCache *c)
{
    for (int i = 0; i < RECENT; i++)
        forget(c->recent + i);
}

int visit_recent(LaunchCache *c, visitproc visit, void *arg)
{
    for (int i = 0; i < RECENT; i++) {
        Py_VISIT(c->recent[i].table);
        Py_VISIT(c->recent[i].found);
    }
    return 0;
}

PyObject *found_in(LaunchCache *c, PyObject *table, const Reading *r)
{
    Recent *one = place_of(c, r);
    Py_ssize_t size = r->n_parts * (Py_ssize_t)sizeof(uint64_t);
    if (one->table == table && one->size == size && memcmp(one->bytes, r->parts, (size_t)size) == 0)
        return Py_NewRef(one->found);
    PyObject *signature = signature_of(r);
    PyObject *found = signature == NULL ? NULL : Py_XNewRef(PyDict_GetItemWithError(table, signature));
    if (found == NULL) {
        Py_XDECREF(signature);
        return NULL;
    }
    forget(one);
    *one = (Recent){Py_NewRef(table), signature, Py_NewRef(found), PyBytes_AsString(signature), size};
    return found;
}
