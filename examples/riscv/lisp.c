/* A small Lisp: it reads expressions from the input and writes what each evaluates to.

   Values are whole numbers, symbols, lists and functions. Special forms: quote ' if cond define lambda let begin.
   Functions: + - * < > = cons car cdr list null? pair? eq? not display newline. Nothing is ever given back to the heap. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { NUMBER, SYMBOL, PAIR, PRIMITIVE, CLOSURE, NIL } Kind;

typedef struct value Value;
struct value {
    Kind kind;
    union {
        long number;
        const char *name;
        struct {
            Value *first, *rest;
        } pair;
        Value *(*primitive)(Value *);
        struct {
            Value *parameters, *body, *scope;
        } closure;
    } as;
};

static Value nil_value = {NIL, {0}};
static Value *const nil = &nil_value;
static Value *symbols, *globals;
static Value *truth, *quote_s, *if_s, *cond_s, *else_s, *define_s, *lambda_s, *let_s, *begin_s;

static void fail(const char *why, const char *what)
{
    printf("error: %s %s\n", why, what);
    exit(1);
}

static Value *make(Kind kind)
{
    Value *value = malloc(sizeof *value);
    if (value == NULL)
        fail("no memory is left", "");
    value->kind = kind;
    return value;
}

static Value *number(long n)
{
    Value *value = make(NUMBER);
    value->as.number = n;
    return value;
}

static Value *cons(Value *first, Value *rest)
{
    Value *value = make(PAIR);
    value->as.pair.first = first;
    value->as.pair.rest = rest;
    return value;
}

static Value *car(Value *pair)
{
    if (pair->kind != PAIR)
        fail("a list was expected", "");
    return pair->as.pair.first;
}

static Value *cdr(Value *pair)
{
    if (pair->kind != PAIR)
        fail("a list was expected", "");
    return pair->as.pair.rest;
}

static Value *symbol(const char *name)
{
    for (Value *s = symbols; s != nil; s = s->as.pair.rest)
        if (strcmp(s->as.pair.first->as.name, name) == 0)
            return s->as.pair.first;
    char *copy = malloc(strlen(name) + 1);
    Value *value = make(SYMBOL);
    value->as.name = strcpy(copy, name);
    symbols = cons(value, symbols);
    return value;
}

static Value *boolean(int is_true) { return is_true ? truth : nil; }

/* Reading */

static int ahead = ' ';

static void skip(void)
{
    while (ahead == ' ' || ahead == '\n' || ahead == '\t' || ahead == ';') {
        if (ahead == ';')
            while (ahead != '\n' && ahead != EOF)
                ahead = getchar();
        else
            ahead = getchar();
    }
}

static Value *read_value(void);

static Value *read_list(void)
{
    skip();
    if (ahead == EOF)
        fail("the input ends inside a list", "");
    if (ahead == ')') {
        ahead = getchar();
        return nil;
    }
    Value *first = read_value();
    return cons(first, read_list());
}

static Value *read_value(void)
{
    char word[40];
    int size = 0;
    skip();
    if (ahead == '(') {
        ahead = getchar();
        return read_list();
    }
    if (ahead == '\'') {
        ahead = getchar();
        return cons(quote_s, cons(read_value(), nil));
    }
    while (ahead != EOF && strchr(" \n\t()';", ahead) == NULL) {
        if (size < (int)sizeof word - 1)
            word[size++] = (char)ahead;
        ahead = getchar();
    }
    word[size] = 0;
    char *end;
    long n = strtol(word, &end, 10);
    if (size == 0)
        fail("a value was expected", "");
    return *end == 0 ? number(n) : symbol(word);
}

/* Writing */

static void write_value(Value *value)
{
    switch (value->kind) {
    case NUMBER: printf("%ld", value->as.number); break;
    case SYMBOL: printf("%s", value->as.name); break;
    case NIL: printf("()"); break;
    case PRIMITIVE:
    case CLOSURE: printf("<function>"); break;
    case PAIR:
        printf("(");
        for (; value->kind == PAIR; value = value->as.pair.rest) {
            write_value(value->as.pair.first);
            if (value->as.pair.rest->kind == PAIR)
                printf(" ");
        }
        if (value != nil) {
            printf(" . ");
            write_value(value);
        }
        printf(")");
    }
}

/* Evaluating. A scope is a list of pairs of a symbol and its value; what is defined at the top stands in `globals`. */

static Value *binding(Value *name, Value *scope)
{
    for (; scope != nil; scope = scope->as.pair.rest)
        if (scope->as.pair.first->as.pair.first == name)
            return scope->as.pair.first;
    for (scope = globals; scope != nil; scope = scope->as.pair.rest)
        if (scope->as.pair.first->as.pair.first == name)
            return scope->as.pair.first;
    return NULL;
}

static Value *evaluate(Value *value, Value *scope);

static Value *evaluate_all(Value *values, Value *scope)
{
    if (values == nil)
        return nil;
    Value *first = evaluate(car(values), scope);
    return cons(first, evaluate_all(cdr(values), scope));
}

static Value *evaluate_body(Value *body, Value *scope)
{
    for (; cdr(body) != nil; body = cdr(body))
        evaluate(car(body), scope);
    return car(body);
}

static Value *closure(Value *parameters, Value *body, Value *scope)
{
    Value *made = make(CLOSURE);
    made->as.closure.parameters = parameters;
    made->as.closure.body = body;
    made->as.closure.scope = scope;
    return made;
}

static Value *define(Value *rest, Value *scope)
{
    Value *name = car(rest);
    Value *value = name->kind == PAIR ? closure(cdr(name), cdr(rest), scope) : evaluate(car(cdr(rest)), scope);
    name = name->kind == PAIR ? car(name) : name;
    globals = cons(cons(name, value), globals);
    return name;
}

static Value *bind(Value *names, Value *values, Value *scope)
{
    for (; names != nil; names = cdr(names), values = cdr(values))
        scope = cons(cons(car(names), car(values)), scope);
    return scope;
}

/* The last expression of a function takes the place of the call, so that a loop by recursion needs no stack. */
static Value *evaluate(Value *value, Value *scope)
{
    for (;;) {
        if (value->kind == SYMBOL) {
            Value *found = binding(value, scope);
            if (found == NULL)
                fail("unknown name", value->as.name);
            return found->as.pair.rest;
        }
        if (value->kind != PAIR)
            return value;
        Value *head = car(value), *rest = cdr(value);
        if (head == quote_s)
            return car(rest);
        if (head == define_s)
            return define(rest, scope);
        if (head == lambda_s)
            return closure(car(rest), cdr(rest), scope);
        if (head == if_s) {
            int chosen = evaluate(car(rest), scope) != nil;
            value = chosen ? car(cdr(rest)) : cdr(cdr(rest)) == nil ? nil : car(cdr(cdr(rest)));
        } else if (head == cond_s) {
            while (rest != nil && car(car(rest)) != else_s && evaluate(car(car(rest)), scope) == nil)
                rest = cdr(rest);
            value = rest == nil ? nil : evaluate_body(cdr(car(rest)), scope);
        } else if (head == begin_s) {
            value = evaluate_body(rest, scope);
        } else if (head == let_s) {
            Value *inner = scope;
            for (Value *each = car(rest); each != nil; each = cdr(each))
                inner = cons(cons(car(car(each)), evaluate(car(cdr(car(each))), scope)), inner);
            scope = inner;
            value = evaluate_body(cdr(rest), scope);
        } else {
            Value *function = evaluate(head, scope), *arguments = evaluate_all(rest, scope);
            if (function->kind == PRIMITIVE)
                return function->as.primitive(arguments);
            if (function->kind != CLOSURE)
                fail("a function was expected", "");
            scope = bind(function->as.closure.parameters, arguments, function->as.closure.scope);
            value = evaluate_body(function->as.closure.body, scope);
        }
    }
}

/* Functions */

static long integer(Value *value)
{
    if (value->kind != NUMBER)
        fail("a number was expected", "");
    return value->as.number;
}

static Value *add(Value *a)
{
    long sum = 0;
    for (; a != nil; a = cdr(a))
        sum += integer(car(a));
    return number(sum);
}

static Value *multiply(Value *a)
{
    long product = 1;
    for (; a != nil; a = cdr(a))
        product *= integer(car(a));
    return number(product);
}

static Value *subtract(Value *a)
{
    long first = integer(car(a));
    return cdr(a) == nil ? number(-first) : number(first - integer(car(cdr(a))));
}

static Value *less(Value *a) { return boolean(integer(car(a)) < integer(car(cdr(a)))); }
static Value *greater(Value *a) { return boolean(integer(car(a)) > integer(car(cdr(a)))); }
static Value *equal(Value *a) { return boolean(integer(car(a)) == integer(car(cdr(a)))); }
static Value *cons_of(Value *a) { return cons(car(a), car(cdr(a))); }
static Value *car_of(Value *a) { return car(car(a)); }
static Value *cdr_of(Value *a) { return cdr(car(a)); }
static Value *list_of(Value *a) { return a; }
static Value *is_null(Value *a) { return boolean(car(a) == nil); }
static Value *is_pair(Value *a) { return boolean(car(a)->kind == PAIR); }
static Value *is_same(Value *a) { return boolean(car(a) == car(cdr(a))); }

static Value *display(Value *a)
{
    write_value(car(a));
    return car(a);
}

static Value *newline(Value *a)
{
    printf("\n");
    return a;
}

static void primitive(const char *name, Value *(*function)(Value *))
{
    Value *value = make(PRIMITIVE);
    value->as.primitive = function;
    globals = cons(cons(symbol(name), value), globals);
}

int main(void)
{
    symbols = globals = nil;
    truth = symbol("t"), quote_s = symbol("quote"), if_s = symbol("if"), cond_s = symbol("cond");
    else_s = symbol("else"), define_s = symbol("define"), lambda_s = symbol("lambda"), let_s = symbol("let");
    begin_s = symbol("begin");
    globals = cons(cons(truth, truth), globals);
    primitive("+", add), primitive("-", subtract), primitive("*", multiply), primitive("<", less);
    primitive(">", greater), primitive("=", equal), primitive("cons", cons_of), primitive("car", car_of);
    primitive("cdr", cdr_of), primitive("list", list_of), primitive("null?", is_null), primitive("not", is_null);
    primitive("pair?", is_pair), primitive("eq?", is_same), primitive("display", display), primitive("newline", newline);
    for (skip(); ahead != EOF; skip()) {
        write_value(evaluate(read_value(), nil));
        printf("\n");
    }
    return 0;
}
